/*
 * Calls of functions in a thread of the target that stands still, staged as the kernel stages a
 * signal handler: below the thread's stack lies a signal frame with all that the thread was, and
 * the function returns to what handlers return to. If we are killed at any moment the function
 * comes to its end and the kernel puts the thread back; if we live we put it back ourselves,
 * exactly. No byte of the target's text changes. All signals of the thread wait meanwhile.
 */
#pragma once

#include "sampler/target/process.h"
#include "sampler/target/trace.h"

enum {
    INJECT_STACK = 128 << 10, /* bytes that are to be free below the thread's stack pointer */
    INJECT_DATA = 512,        /* for inject_give(), in one go */
    INJECT_ARGUMENTS = 6,
    INJECT_PATIENCE_MS = 10000,
    INJECT_LATE_MS = 5,
};

/* What of the C library's text we go through. */
struct inject_code {
    remote_addr
        restorer;       /* what signal handlers return to: asks the kernel for the frame's state */
    remote_addr keeper; /* the end of a function that stores a result, then returns */
    int8_t keeper_offset;  /* where it stores it */
    uint16_t keeper_words; /* that it takes off the stack before it returns */
};

/* Has anybody staged a call on this machine? */
bool inject_is_known(void);

/* Looks for them in a part of the text: true when both are known. -ENOTSUP machines have none. */
bool inject_code_find(const uint8_t *text, size_t size, remote_addr address,
                      struct inject_code *code);

struct injection_thread;

/*
 * Takes the pause over, save when it fails: then the thread is as it was. It must hold no lock that
 * the functions will want. -ENOTSUP: not on this machine; -ESRCH; -EFAULT: no room on its stack.
 */
int inject_begin(struct process *process, struct pause *pause, const struct inject_code *code,
                 struct injection_thread **ret, struct failure *why);

/*
 * Calls it with INJECT_ARGUMENTS. -ESRCH: gone; -EFAULT: it crashed, and was abandoned; -ETIMEDOUT:
 * it did not return within INJECT_PATIENCE_MS, and will be put back by the kernel when it does.
 * After each of these the thread is no longer ours.
 */
int inject_call(struct injection_thread *thread, remote_addr function, const uint64_t *arguments,
                uint64_t *ret);

/* A call that is not back by then waits for somebody: that is told, with how often it was told
 * before, until the answer is false. */
typedef bool inject_late(void *context, unsigned times);
void inject_set_late(struct injection_thread *thread, inject_late *late, void *context);

/* Bytes that stay until the next ones are given: their address there. */
int inject_give(struct injection_thread *thread, const void *bytes, size_t size, remote_addr *ret);

/* Writes into the target: 0, -EFAULT, -ESRCH. */
int inject_write(struct injection_thread *thread, remote_addr address, const void *bytes,
                 size_t size);

/* The thread goes on as if nothing had been. */
void inject_end(struct injection_thread *thread);
