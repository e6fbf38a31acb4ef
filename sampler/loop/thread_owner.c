#include "sampler/loop/thread_owner.h"

#include "pyabi/pyabi.h"

#include <string.h>

enum {
    HEAD_ALIGNMENT = 64, /* of struct pthread */
    SELF = 16, /* tcbhead_t.self; .tcb at 0 is the same (glibc: sysdeps/x86_64/nptl/tls.h) */
    STACK_MOST = 8 << 20,
    CHUNK = 64 << 10,
};

static const struct os_thread *thread_find(const struct os_thread *threads, int count, pid_t tid)
{
    for (int i = 0; i < count; i++)
        if (threads[i].inner_tid == tid)
            return &threads[i];
    return NULL;
}

const struct os_thread *thread_owner_by_struct(struct remote *memory, remote_addr address,
                                               const struct os_thread *threads, int count)
{
    for (size_t i = 0; i < USUAL_TID_OFFSETS; i++) {
        pid_t tid = 0;
        if (remote_read(memory, address + usual_tid_offsets[i], &tid, sizeof tid) || !tid)
            continue;
        const struct os_thread *thread = thread_find(threads, count, tid);
        if (thread)
            return thread;
    }
    return NULL;
}

static bool is_head(const uint8_t *bytes, remote_addr address)
{
    remote_addr self, again;
    memcpy(&self, bytes, sizeof self);
    memcpy(&again, bytes + SELF, sizeof again);
    return self == address && again == address;
}

/* A stack ends with the struct of its thread, which begins with its own address. */
static remote_addr head_find(struct remote *memory, remote_addr from, remote_addr end)
{
    uint8_t bytes[CHUNK];
    remote_addr at = (from + HEAD_ALIGNMENT - 1) & ~(remote_addr)(HEAD_ALIGNMENT - 1);
    if (end - at > STACK_MOST)
        end = at + STACK_MOST;
    while (at < end) {
        size_t size = end - at < CHUNK ? end - at : CHUNK;
        if (remote_read(memory, at, bytes, size))
            return 0;
        for (size_t i = 0; i + SELF + sizeof(remote_addr) <= size; i += HEAD_ALIGNMENT)
            if (is_head(bytes + i, at + i))
                return at + i;
        at += size;
    }
    return 0;
}

const struct os_thread *thread_owner_by_stack(struct process *process, const struct maps *maps,
                                              remote_addr address, const struct os_thread *threads,
                                              int count)
{
    struct remote *memory = &process->memory;
    const struct mapping *stack = maps_find(maps, address);
    if (!stack)
        return NULL;
    if (strcmp(stack->path, "[stack]") == 0)
        return thread_find(threads, count, process->inner_pid);
    remote_addr head = head_find(memory, address, stack->end);
    return head ? thread_owner_by_struct(memory, head, threads, count) : NULL;
}
