#include "sampler/target/stillness.h"

#include "sampler/base/cleanup.h"
#include "sampler/target/threads.h"

#include <fcntl.h>

enum { ROUNDS = 8 };

static bool has_thread(const struct stillness *still, pid_t tid)
{
    for (size_t i = 0; i < still->count; i++)
        if (still->pauses[i].tid == tid)
            return true;
    return false;
}

static int room_make(struct stillness *still, size_t more, size_t most)
{
    size_t capacity = still->count + more;
    if (more > most)
        return -E2BIG;
    struct pause *pauses = realloc(still->pauses, capacity * sizeof *pauses);
    if (!pauses)
        return -ENOMEM;
    still->pauses = pauses;
    still->capacity = capacity;
    return 0;
}

/* How many were paused now; one that ends meanwhile is none. */
static int round_pause(const struct process *process, struct stillness *still, size_t most)
{
    AUTO_FREE struct os_thread *threads = NULL;
    size_t before = still->count;
    int count = threads_list(process, &threads);
    int error = count < 0 ? count : room_make(still, (size_t)count, most);
    for (int i = 0; i < count && !error; i++) {
        if (has_thread(still, threads[i].tid))
            continue;
        error = thread_pause(threads[i].tid, &still->pauses[still->count]);
        still->count += !error;
        error = error == -ESRCH ? 0 : error;
    }
    return error ? error : (int)(still->count - before);
}

/* Those that stand begin no others: a round that finds none was the last. */
int stillness_extend(const struct process *process, struct stillness *still, size_t most)
{
    int paused = 1;
    for (int i = 0; i < ROUNDS && paused > 0; i++)
        paused = round_pause(process, still, most);
    return paused > 0 ? -EAGAIN : paused;
}

int stillness_begin(const struct process *process, size_t most, struct stillness *ret)
{
    *ret = (struct stillness){ .memory_fd = openat(process->proc_fd, "mem", O_WRONLY | O_CLOEXEC) };
    if (ret->memory_fd < 0)
        return errno == ENOENT || errno == ESRCH ? -ESRCH : -EPERM;
    int error = stillness_extend(process, ret, most);
    if (!error && !ret->count)
        error = -ESRCH;
    if (error)
        stillness_end(ret);
    return error;
}

void stood_add(struct stood *sum, const struct stood *more)
{
    sum->count += more->count;
    sum->sum_ns += more->sum_ns;
    if (more->longest_ns > sum->longest_ns)
        sum->longest_ns = more->longest_ns;
}

void stillness_resume(struct stillness *still, struct pause *pause)
{
    int64_t ns = pause->tid ? thread_resume(pause) : -1;
    const struct stood stood = { 1, (uint64_t)ns, (uint64_t)ns };
    if (ns >= 0)
        stood_add(&still->stood, &stood);
}

struct pause stillness_take(struct pause *pause)
{
    struct pause taken = *pause;
    *pause = (struct pause){ 0 };
    return taken;
}

void stillness_end(struct stillness *still)
{
    for (size_t i = 0; i < still->count; i++)
        stillness_resume(still, &still->pauses[i]);
    free(still->pauses);
    cleanup_close(&still->memory_fd);
    *still = (struct stillness){ .memory_fd = -1, .stood = still->stood };
}

int stillness_write(const struct stillness *still, remote_addr address, const void *bytes,
                    size_t size)
{
    ssize_t written = pwrite(still->memory_fd, bytes, size, (off_t)address);
    if (written == (ssize_t)size)
        return 0;
    return written == 0 ? -ESRCH : -EFAULT; /* the file outlives the memory it shows */
}
