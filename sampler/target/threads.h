/* The kernel's view of a process's threads: ids, run time, what each waits for. Pauses nothing. */
#pragma once

#include "sampler/base/event.h"
#include "sampler/target/process.h"

struct os_thread {
    pid_t tid;       /* in our PID namespace */
    pid_t inner_tid; /* in the target's innermost PID namespace */
    char comm[16];
};

/* All threads, ascending: count or negative errno. Caller frees. */
int threads_list(const struct process *process, struct os_thread **ret);

struct wait_state {
    enum thread_state state; /* a futex is THREAD_WAIT_LOCK here; the caller may know better */
    remote_addr futex;       /* its address, 0 if it waits on none */
    uint64_t run_ns;         /* schedstat: time on a CPU */
    uint64_t queued_ns;      /* time runnable without a CPU */
    uint64_t turns;          /* times it got a CPU: unchanged means it did not run in between */
    bool off_cpu;            /* blocked or stopped at the time of the call */
    remote_addr sp, ip;      /* user stack and instruction pointer where the kernel tells; else 0 */
};

/* 0, -ESRCH, -EPERM. */
int thread_read_wait(const struct process *process, pid_t tid, struct wait_state *ret);

/* schedstat's time on a CPU alone: 0, -ESRCH, -EPERM. A kernel without the account: 0 ns. */
int thread_read_run(const struct process *process, pid_t tid, uint64_t *ret_ns);

/* thread_read_wait for a thread that is asked often: its descriptors, kept. Borrows the process. */
struct thread_probe {
    const struct process *process;
    pid_t tid;
    int call_fd, account_fd, stat_fd;
    uint64_t stop_turns; /* when it was asked last whether it is stopped: 0 never */
    bool stopped;
};

int thread_probe_open(const struct process *process, pid_t tid, struct thread_probe *ret);
void thread_probe_close(struct thread_probe *probe);
int thread_probe_read(struct thread_probe *probe, struct wait_state *ret);

/* The account of a thread that is known to run just now, without asking what it does. */
int thread_probe_running(const struct thread_probe *probe, struct wait_state *ret);

/* The core on which it runs or ran last, or negative. */
int thread_probe_core(const struct thread_probe *probe);

/* Only run_ns, queued_ns and turns; all else of `wait` stays. */
int thread_probe_account(const struct thread_probe *probe, struct wait_state *wait);
