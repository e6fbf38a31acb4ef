#define _GNU_SOURCE 1 /* process_vm_readv */

#include "sampler/target/trace.h"

#include "sampler/base/clock_read.h"
#include "sampler/target/arch.h"
#include "sampler/target/proc_file.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
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
    int signal;       /* to hand over when it goes on */
    bool is_of_group; /* the process is stopped */
};

/* Waits for stops alone: an exit status is the parent's to take, and the parent may be us. */
static struct stop stop_wait(pid_t tid)
{
    siginfo_t info;
    int result;
    do {
        result = waitid(P_PID, (id_t)tid, &info, WSTOPPED | __WALL);
    } while (result < 0 && errno == EINTR);
    if (result < 0)
        return (struct stop){ .kind = STOP_GONE };

    int event = info.si_status >> 8;
    if (event == PTRACE_EVENT_EXIT)
        return (struct stop){ .kind = STOP_EXITING };
    if (event)
        return (struct stop){ .kind = STOP_TRAP,
                              .is_of_group = (info.si_status & 0x7f) != SIGTRAP };
    return (struct stop){ .kind = STOP_SIGNAL, .signal = info.si_status };
}

/*
 * Who ends while we trace it shows as ended to whoever polls its pidfd, but not to whoever waits
 * for it before we have: tokio takes that for a fault of the kernel's. So at once, save for our own
 * child, whose status is for others here to take.
 */
static void thread_bury(pid_t tid, bool is_child)
{
    if (!is_child)
        waitpid(tid, NULL, __WALL | WNOHANG);
}

/*
 * A detach fails only for a thread that was killed while it stood. It comes by once more, on its
 * way out, or is dead already.
 */
static int thread_detach(pid_t tid, bool is_child, int signal)
{
    int result = 0;
    while (ptrace(PTRACE_DETACH, tid, 0, (long)signal) < 0) {
        result = -ESRCH;
        signal = 0;
        if (stop_wait(tid).kind != STOP_GONE)
            continue;
        thread_bury(tid, is_child);
        break;
    }
    return result;
}

/* No thread of its but the main one is anybody's to wait for. */
static bool is_own_child(pid_t tid)
{
    siginfo_t info;
    return waitid(P_PID, (id_t)tid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static char thread_state_letter(pid_t tid)
{
    char path[64];
    struct proc_stat stat;
    snprintf(path, sizeof path, "/proc/%d/stat", tid);
    return proc_read_stat(AT_FDCWD, path, &stat) < 0 ? 'X' : stat.state;
}

/*
 * A thread that is past telling us of its exit has no memory any more, and takes the longer to end
 * the more it had. It cannot stop then, nor be let go: better not to trace it. Nothing is at the
 * address, in whatever is there.
 */
static bool has_memory(pid_t tid)
{
    char byte;
    struct iovec here = { &byte, 1 }, there = { NULL, 1 };
    return process_vm_readv(tid, &here, 1, &there, 1, 0) >= 0 || errno != ESRCH;
}

int thread_pause(pid_t tid, struct pause *ret)
{
    /* Such a thread stops only when its sleep ends, which may be never: we would wait as long. */
    return thread_state_letter(tid) == 'D' ? -EAGAIN : thread_pause_running(tid, NULL, ret);
}

int thread_pause_running(pid_t tid, struct core_holder *holder, struct pause *ret)
{
    bool is_child = is_own_child(tid);
    if (!has_memory(tid))
        return -ESRCH;
    /* Told of its exit, we never wait for a main thread that is dead while others live. */
    if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACEEXIT) < 0) {
        int error = errno;
        char state = thread_state_letter(tid);
        return error == ESRCH || state == 'X' || state == 'Z' ? -ESRCH : -EPERM;
    }
    uint64_t since_ns = clock_ns(CLOCK_MONOTONIC);
    ptrace(PTRACE_INTERRUPT, tid, 0, 0);
    if (holder)
        core_holder_release(holder);
    struct stop stop = stop_wait(tid);
    switch (stop.kind) {
    case STOP_GONE:
        thread_bury(tid, is_child);
        return -ESRCH;
    case STOP_EXITING:
        thread_detach(tid, is_child, 0);
        return -ESRCH;
    default:
        *ret = (struct pause){ tid, since_ns, stop.signal, stop.is_of_group, is_child };
        return 0;
    }
}

int64_t thread_resume(struct pause *pause)
{
    if (!pause->tid)
        return 0;
    int result = thread_detach(pause->tid, pause->is_child, pause->signal);
    int64_t stood_ns = (int64_t)(clock_ns(CLOCK_MONOTONIC) - pause->since_ns);
    *pause = (struct pause){ 0 };
    return result < 0 ? result : stood_ns;
}

enum { SET_WORDS = 64 };

static int set_read(const struct pause *pause, uint64_t *words)
{
    struct iovec set = { words, SET_WORDS * sizeof *words };
    if (ptrace(PTRACE_GETREGSET, pause->tid, (void *)NT_PRSTATUS, &set) < 0)
        return -errno;
    return set.iov_len == native_arch.set_words * sizeof *words ? 0 : -ENOTSUP; /* 32 bits */
}

/* Where the set does not tell, nobody asks yet. */
int thread_read_call(const struct pause *pause, uint64_t *ret)
{
    uint64_t words[SET_WORDS];
    int error = set_read(pause, words);
    if (error || native_arch.call_word >= SET_WORDS)
        return error ? error : -ENOENT;
    *ret = words[native_arch.call_word];
    return 0;
}

int thread_read_registers(const struct pause *pause, struct registers *ret)
{
    uint64_t words[SET_WORDS];
    int error = set_read(pause, words);
    if (error)
        return error;

    struct registers registers = {
        .ip = words[native_arch.ip_word],
        .sp = words[native_arch.sp_word],
        .fp = words[native_arch.fp_word],
        .count = native_arch.register_count,
        .in_call = native_arch.call_word < SET_WORDS && (int64_t)words[native_arch.call_word] >= 0,
    };
    for (unsigned i = 0; i < registers.count; i++)
        registers.all[i] = words[native_arch.register_words[i]];
    *ret = registers;
    return 0;
}
