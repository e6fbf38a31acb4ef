#include "sampler/target/trace.h"

#include "sampler/target/arch.h"
#include "sampler/target/proc_file.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

/* What a stop of the thread means to us, once waitpid has told of it. */
enum stop_kind {
    STOP_GONE,    /* ended, and reaped where that was ours to do */
    STOP_EXITING, /* on its way out: has no stack worth reading */
    STOP_SIGNAL,  /* about to receive a signal, which must go on to it */
    STOP_TRAP,    /* the stop we asked for, or a group stop it was in */
};

struct stop {
    enum stop_kind kind;
    int signal; /* to hand over when it goes on */
};

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct stop stop_wait(pid_t tid)
{
    int status;
    pid_t got;
    do {
        got = waitpid(tid, &status, __WALL);
    } while (got < 0 && errno == EINTR);

    if (got < 0 || !WIFSTOPPED(status))
        return (struct stop){ STOP_GONE, 0 };
    switch (status >> 16) {
    case 0:
        return (struct stop){ STOP_SIGNAL, WSTOPSIG(status) };
    case PTRACE_EVENT_EXIT:
        return (struct stop){ STOP_EXITING, 0 };
    default:
        return (struct stop){ STOP_TRAP, 0 };
    }
}

/*
 * A detach fails only for a thread that was killed while it stood: it comes by once more, on its way out, or is
 * dead already. Not to take that news would keep a dead thread, and so its whole process, from being buried.
 */
static int thread_detach(pid_t tid, int signal)
{
    int result = 0;
    while (ptrace(PTRACE_DETACH, tid, 0, (long)signal) < 0) {
        result = -ESRCH;
        signal = 0;
        if (stop_wait(tid).kind == STOP_GONE)
            break;
    }
    return result;
}

static char thread_state_letter(pid_t tid)
{
    char path[64];
    struct proc_stat stat;
    snprintf(path, sizeof path, "/proc/%d/stat", tid);
    return proc_read_stat(AT_FDCWD, path, &stat) < 0 ? 'X' : stat.state;
}

int thread_pause(pid_t tid, struct pause *ret)
{
    /* Such a thread would stop only when its sleep ends, which may be never, and we would wait as long. */
    if (thread_state_letter(tid) == 'D')
        return -EAGAIN;
    /* Told of its exit, we never wait for a main thread that is dead while others live. */
    if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACEEXIT) < 0) {
        int error = errno;
        char state = thread_state_letter(tid);
        return error == ESRCH || state == 'X' || state == 'Z' ? -ESRCH : -EPERM;
    }
    uint64_t since_ns = clock_ns();
    ptrace(PTRACE_INTERRUPT, tid, 0, 0);
    struct stop stop = stop_wait(tid);
    switch (stop.kind) {
    case STOP_EXITING:
        thread_detach(tid, 0);
        return -ESRCH;
    case STOP_GONE:
        return -ESRCH;
    default:
        *ret = (struct pause){ tid, since_ns, stop.signal };
        return 0;
    }
}

int64_t thread_resume(struct pause *pause)
{
    if (!pause->tid)
        return 0;
    int result = thread_detach(pause->tid, pause->signal);
    int64_t stood_ns = (int64_t)(clock_ns() - pause->since_ns);
    *pause = (struct pause){ 0 };
    return result < 0 ? result : stood_ns;
}

int thread_read_registers(const struct pause *pause, struct registers *ret)
{
    uint64_t words[64];
    struct iovec set = { words, sizeof words };
    if (ptrace(PTRACE_GETREGSET, pause->tid, (void *)NT_PRSTATUS, &set) < 0)
        return -errno;
    if (set.iov_len != native_arch.set_words * sizeof *words)
        return -ENOTSUP; /* a 32-bit program */

    struct registers registers = {
        .ip = words[native_arch.ip_word],
        .sp = words[native_arch.sp_word],
        .fp = words[native_arch.fp_word],
        .count = native_arch.register_count,
    };
    for (unsigned i = 0; i < registers.count; i++)
        registers.all[i] = words[native_arch.register_words[i]];
    *ret = registers;
    return 0;
}
