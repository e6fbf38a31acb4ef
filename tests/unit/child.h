/*
 * Targets for the tests of sampler/target: children made by fork, which say "ready" through a pipe
 * and die with the test. What they count stands in memory shared with the test.
 */
#pragma once

#include "sampler/base/cleanup.h"
#include "sampler/target/process.h"
#include "sampler/target/threads.h"
#include "skipped.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHILD_SECONDS = 30 }; /* a limit for the broken case, never waited for in a good one */

struct child {
    pid_t pid;
    int ready;  /* the child writes */
    int orders; /* the child reads */
};

struct child_side {
    int ready, orders;
    void *argument;
};

/* For a process just forked: ends with its parent, even with one that has ended by now. */
static inline void end_with_parent(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
}

static inline void child_say_ready(const struct child_side *side)
{
    if (write(side->ready, "r", 1) != 1)
        _exit(90);
}

/* Waits for an order; ends with the test. */
static inline void child_await_order(const struct child_side *side)
{
    char order;
    if (read(side->orders, &order, 1) != 1)
        _exit(0);
}

static inline struct child child_start(void (*run)(struct child_side *side), void *argument)
{
    int ready[2], orders[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(orders), 0);
    pid_t test = getpid(), pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        end_with_parent(test);
        close(ready[0]);
        close(orders[1]);
        struct child_side side = { ready[1], orders[0], argument };
        run(&side);
        _exit(0);
    }
    close(ready[1]);
    close(orders[0]);
    return (struct child){ pid, ready[0], orders[1] };
}

static inline void child_await_ready(const struct child *child)
{
    char byte;
    assert_int_equal(read(child->ready, &byte, 1), 1);
}

static inline void child_order(const struct child *child)
{
    assert_int_equal(write(child->orders, "o", 1), 1);
}

/* How it ended, as waitpid says. */
static inline int child_wait(struct child *child)
{
    int status;
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    close(child->ready);
    close(child->orders);
    child->pid = 0;
    return status;
}

static inline void child_kill(struct child *child)
{
    if (!child->pid)
        return;
    kill(child->pid, SIGKILL);
    child_wait(child);
}

#define AUTO_CHILD CLEANUP(child_kill)

/* Zeroed, and the same bytes for all children started later. */
static inline void *shared_new(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    return memory;
}

/* The same memory for every test of a program: made for the first, emptied for the next. */
static inline void *shared_zeroed(void *memory, size_t size)
{
    return memory ? memset(memory, 0, size) : shared_new(size);
}

/* A target that does nothing until told, or until the test ends. */
static inline void rest(struct child_side *side)
{
    child_say_ready(side);
    child_await_order(side);
}

/* Lets the kernel answer `error` to one call of ours, or two, from now on, as a sandbox does. */
static inline void filter_calls(int first, int second, int error)
{
    struct sock_filter rows[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)first, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)second, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof rows / sizeof *rows, rows };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        _exit(93);
}

static inline uint64_t seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec;
}

/* Asks until it holds; what never comes to hold is a failure of the test, not a slow machine. */
#define await(condition)                                                                           \
    do {                                                                                           \
        uint64_t limit_ = seconds_now() + CHILD_SECONDS;                                           \
        while (!(condition)) {                                                                     \
            if (seconds_now() > limit_)                                                            \
                fail_msg("never came true: %s", #condition);                                       \
            sched_yield();                                                                         \
        }                                                                                          \
    } while (0)

static inline struct process *open_child(const struct child *child)
{
    struct process *process;
    struct failure why = { 0 };
    if (process_open(child->pid, &process, &why))
        fail_msg("process_open: %s", why.text);
    return process;
}

DEFINE_CLEANUP(struct process *, process_close)
#define AUTO_PROCESS CLEANUP(process_closep)

static inline char thread_letter(pid_t tid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", tid);
    AUTO_FCLOSE FILE *file = fopen(path, "re");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[length] = '\0';
    const char *end = strrchr(text, ')');
    return end && end[1] ? end[2] : 'X';
}

static inline enum thread_state wait_of(const struct process *process, pid_t tid)
{
    struct wait_state wait;
    int result = thread_read_wait(process, tid, &wait);
    if (result)
        fail_msg("thread_read_wait of %d: %d", tid, result);
    return wait.state;
}
