/*
 * One thread, paused for microseconds: PTRACE_SEIZE and INTERRUPT, never SIGSTOP. A thread that was
 * stopped stays stopped, one that was running runs on; the kernel lets go of it if we are killed.
 */
#pragma once

#include "sampler/base/error.h"
#include "sampler/base/registers.h"

#include "sampler/target/core_holder.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct pause {
    pid_t tid;         /* 0: nothing is paused */
    uint64_t since_ns; /* CLOCK_MONOTONIC when it was asked to stand: never later than it did */
    int signal;        /* caught on its way to the thread, handed over when that goes on; else 0 */
    bool was_stopped;  /* with its process, as by SIGSTOP, and will be again */
    bool is_child;     /* of ours: its end is told to others here */
};

/*
 * 0, -ESRCH (gone), -EPERM (refused, or another tracer has it), -EAGAIN (in an uninterruptible
 * sleep: cannot be stopped now, and its stack does not move). Resume on the thread that paused it.
 */
int thread_pause(pid_t tid, struct pause *ret);

/* The same for one that was met running just now: asking whether it can be stopped takes as long as
 * half a pause. Never -EAGAIN. Lets go of its core, if that is held (else NULL), once it is asked.
 */
int thread_pause_running(pid_t tid, struct core_holder *holder, struct pause *ret);

/* Lets it run on: the nanoseconds it stood, or -ESRCH. Safe on a pause that holds nothing. */
int64_t thread_resume(struct pause *pause);

int thread_read_registers(const struct pause *pause, struct registers *ret);

/* The number of the system call that it was in: 0, or -ENOENT. */
int thread_read_call(const struct pause *pause, uint64_t *ret);
