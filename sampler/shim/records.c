#define _GNU_SOURCE 1 /* syscall */

#include "sampler/shim/records.h"

#include "sampler/shim/codes.h"
#include "sampler/shim/sampling.h"
#include "sampler/shim/stack_walk.h"
#include "sampler/shim/thread.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_BUFFER = 2048 };

struct recorder recorder = { .term = 1 };

/* Asked at every sample, where a system call would cost more than all the rest. */
static bool is_mine(void)
{
    return recorder.mine ? *recorder.mine : recorder.own_pid == (uint32_t)getpid();
}

bool recorder_listens(void)
{
    return ring_is_armed(&recorder.ring) && is_mine();
}

static volatile uint8_t *page_make(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    long at =
        syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1L, 0L);
    if (at == -1)
        return NULL;
    if (syscall(SYS_madvise, at, size, MADV_WIPEONFORK) == 0)
        return (volatile uint8_t *)at;
    syscall(SYS_munmap, at, size);
    return NULL;
}

/* The ring is found through the reader's /proc, and so that tells how the reader numbers us. */
static uint32_t pid_outside(void)
{
    char text[16] = "";
    uint32_t pid = 0;
    syscall(SYS_readlinkat, (long)AT_FDCWD, "/proc/self", text, sizeof text - 1);
    for (const char *at = text; *at >= '0' && *at <= '9'; at++)
        pid = pid * 10 + (uint32_t)(*at - '0');
    return pid ? pid : recorder.own_pid;
}

/* May it be another number than its own? Nobody who was attached to is asked for more calls than
 * that takes; its reader knows. */
static bool is_numbered_otherwise(uint32_t before, uint32_t before_outside)
{
    return !recorder.attached &&
           (!before || before != before_outside || before != (uint32_t)getppid());
}

void recorder_claim(void)
{
    uint32_t before = recorder.own_pid;
    recorder.from_pid = recorder.pid;
    recorder.pid = recorder.own_pid = (uint32_t)getpid();
    if (is_numbered_otherwise(before, recorder.from_pid))
        recorder.pid = pid_outside();
    if (!recorder.mine)
        recorder.mine = page_make();
    if (recorder.mine)
        *recorder.mine = 1;
}

/* An eighth of the ring is for what must not be lost while blocks and copies are: names and ends.
 */
static uint64_t ring_spare(void)
{
    return recorder.ring.slot_count / 8;
}

static struct record_head head_make(enum record_kind kind, size_t size)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!shim_thread.tid)
        shim_thread.tid = (uint32_t)syscall(SYS_gettid);
    return (struct record_head){
        .kind = (uint16_t)kind,
        .size = (uint32_t)size,
        .pid = recorder.pid,
        .tid = shim_thread.tid,
        .time_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec,
    };
}

void record_process(bool forked)
{
    struct process_record record = {
        .head = head_make(RECORD_PROCESS, sizeof record),
        .ppid = forked ? recorder.from_pid : (uint32_t)getppid(),
        .major = recorder.python.major,
        .minor = recorder.python.minor,
        .free_threaded = recorder.python.free_threaded,
        .forked = forked,
    };
    const struct ring_part part = { &record, sizeof record };
    if (!ring_write(&recorder.ring, recorder.pid, 0, &part, 1))
        ring_lose(&recorder.ring, RECORD_PROCESS, 0);
}

/* ---- code ---- */

static bool record_code(const struct ring_python *layout, struct field_reader *reader, uint32_t id,
                        const void *code)
{
    char buffer[TEXT_BUFFER];
    struct code_text text;
    code_text_read(layout, reader, code, buffer, sizeof buffer, &text);
    if (reader->failed)
        return false;
    size_t without_table = sizeof(struct code_record) + text.name_size + text.file_size;
    if (!ring_slots_needed(without_table + text.table_size))
        text.table_size = 0;
    size_t size = without_table + text.table_size;
    const struct code_record record = {
        .head = head_make(RECORD_CODE, size),
        .code_id = id,
        .first_line = text.first_line,
        .name_size = (uint32_t)text.name_size,
        .file_size = (uint32_t)text.file_size,
        .table_size = (uint32_t)text.table_size,
        .major = layout->major,
        .minor = layout->minor,
        .free_threaded = layout->free_threaded,
    };
    const struct ring_part parts[] = { { &record, sizeof record },
                                       { text.name, text.name_size },
                                       { text.file, text.file_size },
                                       { text.table, text.table_size } };
    bool written = ring_write(&recorder.ring, recorder.pid, 0, parts, 4);
    if (!written)
        ring_lose(&recorder.ring, RECORD_CODE, 0);
    return written;
}

/* Told of before it is named; two threads may tell of it twice. */
static uint32_t code_name(const struct ring_python *layout, struct field_reader *reader,
                          const void *code)
{
    uint32_t id = code_identify(layout, reader, code);
    if (id == 0 && codes_are_full())
        ring_tell_gap(&recorder.ring, GAP_CODES);
    if (id == 0 || id == CODE_INTERNAL || code_is_told(id))
        return id;
    if (!record_code(layout, reader, id, code))
        return 0;
    code_set_told(id);
    return id;
}

/* ---- blocks ---- */

/* Signal handlers copy and map, too, and may have interrupted CPython in the middle of pushing a
 * frame; what allocates must not be called there. */
static bool may_be_handler(enum record_kind kind, enum allocation_domain domain)
{
    return kind == RECORD_COPIED || domain == DOMAIN_MAPPED;
}

/* A stack that was set aside for signal handlers may have no room for what a walk takes. */
static bool is_on_signal_stack(void)
{
    stack_t stack;
    return sigaltstack(NULL, &stack) == 0 && stack.ss_flags & SS_ONSTACK;
}

/* The state of the thread, if its stack can be walked. */
static const void *own_state(bool careful)
{
    if (!atomic_load_explicit(&recorder.has_python, memory_order_acquire) ||
        (careful && is_on_signal_stack()))
        return NULL;
    return python_thread_state(&recorder.python);
}

/* Its head is made here, and its frames follow. */
static bool block_write(enum record_kind kind, struct block_record *record,
                        const struct record_frame *frames)
{
    size_t frames_size = record->frame_count * sizeof *frames;
    record->head = head_make(kind, sizeof *record + frames_size);
    const struct ring_part parts[] = { { record, sizeof *record }, { frames, frames_size } };
    return ring_write(&recorder.ring, recorder.pid, ring_spare(), parts, 2);
}

/* Apart, so that who has no stack to walk needs no room for it. */
static __attribute__((noinline)) bool block_write_walked(enum record_kind kind,
                                                         struct block_record *record,
                                                         const void *state, bool careful)
{
    struct field_reader reader = { .careful = careful };
    struct walked_stack stack;
    stack_walk(&recorder.python, state, &reader, code_name, &stack);
    record->frame_count = (uint16_t)stack.count;
    record->frames_left_out = (uint16_t)stack.left_out;
    return block_write(kind, record, stack.frames);
}

static bool record_block(enum record_kind kind, uint64_t number, uint64_t size,
                         enum allocation_domain domain)
{
    bool careful = may_be_handler(kind, domain);
    const void *state = own_state(careful);
    struct block_record record = { .block = number, .size = size, .domain = (uint8_t)domain };
    return state ? block_write_walked(kind, &record, state, careful)
                 : block_write(kind, &record, NULL);
}

bool record_allocated(uint64_t number, uint64_t size, enum allocation_domain domain)
{
    if (record_block(RECORD_ALLOCATED, number, size, domain))
        return true;
    ring_lose(&recorder.ring, RECORD_ALLOCATED, sampling_weight(size, recorder.ring.window));
    return false;
}

void record_copied(uint64_t weight)
{
    if (!record_block(RECORD_COPIED, 0, weight, DOMAIN_NATIVE))
        ring_lose(&recorder.ring, RECORD_COPIED, weight);
}

static bool record_change(enum record_kind kind, const struct block *block)
{
    const struct change_record record = {
        .head = head_make(kind, sizeof record),
        .block = block->number,
        .size = kind == RECORD_RESIZED ? block->told : 0,
    };
    const struct ring_part part = { &record, sizeof record };
    return ring_write(&recorder.ring, recorder.pid, 0, &part, 1);
}

void record_freed(const struct block *block)
{
    if (block->number && !record_change(RECORD_FREED, block))
        ring_lose(&recorder.ring, RECORD_FREED, block->weight);
    if (block->lost)
        ring_lose(&recorder.ring, RECORD_FREED, block->lost);
}

void record_resized(const struct block *block, uint64_t weight_lost)
{
    if (block->number && !record_change(RECORD_RESIZED, block))
        ring_lose(&recorder.ring, RECORD_RESIZED, weight_lost);
}
