#include "sampler/target/trace.h"

#include "sampler/target/arch.h"
#include "sampler/target/proc_file.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What a stop of the thread means to us, once waitpid has told of it. */
enum stop_kind {
    STOP_GONE,    /* ended */
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

/* Waits for stops alone: an exit status is the parent's to take, and the parent may be us. */
static struct stop stop_wait(pid_t tid)
{
    siginfo_t info;
    int result;
    do {
        result = waitid(P_PID, (id_t)tid, &info, WSTOPPED | __WALL);
    } while (result < 0 && errno == EINTR);
    if (result < 0)
        return (struct stop){ STOP_GONE, 0 };

    int event = info.si_status >> 8;
    if (event == PTRACE_EVENT_EXIT)
        return (struct stop){ STOP_EXITING, 0 };
    return event ? (struct stop){ STOP_TRAP, 0 } : (struct stop){ STOP_SIGNAL, info.si_status };
}

static bool is_own_child(pid_t tid)
{
    char path[64], status[8192];
    snprintf(path, sizeof path, "/proc/%d/status", tid);
    return proc_read_file(AT_FDCWD, path, status, sizeof status) > 0 &&
           proc_find_number(status, "Tgid", 10) == (uint64_t)tid &&
           proc_find_number(status, "PPid", 10) == (uint64_t)getpid();
}

/*
 * A detach fails only for a thread that was killed while it stood. It comes by once more, on its
 * way out, or is dead already; then its process cannot be buried before we have looked, save for
 * its parent.
 */
static int thread_detach(pid_t tid, int signal)
{
    int result = 0;
    while (ptrace(PTRACE_DETACH, tid, 0, (long)signal) < 0) {
        result = -ESRCH;
        signal = 0;
        if (stop_wait(tid).kind != STOP_GONE)
            continue;
        if (!is_own_child(tid))
            waitpid(tid, NULL, __WALL | WNOHANG);
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
    /* Such a thread stops only when its sleep ends, which may be never: we would wait as long. */
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
    case STOP_GONE:
        thread_detach(tid, 0);
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
        .in_call = native_arch.call_word < sizeof words / sizeof *words &&
                   (int64_t)words[native_arch.call_word] >= 0,
    };
    for (unsigned i = 0; i < registers.count; i++)
        registers.all[i] = words[native_arch.register_words[i]];
    *ret = registers;
    return 0;
}
