/*
 * A core, taken at a moment that was set before, so that a thread that runs on it is met where it
 * was then. PTRACE_INTERRUPT alone is seen at once where the thread comes back from a system call,
 * and everywhere else only when an interrupt has travelled to its core: most looks at a program
 * that calls the kernel all the time would meet it there. A timer on the thread's own core has no
 * way to go: a helper, woken by one, takes the core, and the request comes while nobody runs on it.
 */
#pragma once

#include <stdint.h>

struct core_holder;

enum { CORE_HOLD_NS = 60000 }; /* nobody is held longer, whatever becomes of the asker */

/* 0 or -ENOMEM. Its thread begins when it is needed first. */
int core_holder_new(struct core_holder **ret);
void core_holder_free(struct core_holder *holder);

/*
 * Waits until shortly from now, on the core and here: since when the core is held, until released
 * and for a moment at most; or 0: it could not be had, or it is the caller's own, who took it when
 * he woke.
 */
uint64_t core_holder_take(struct core_holder *holder, int core);
void core_holder_release(struct core_holder *holder);
