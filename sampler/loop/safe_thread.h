/*
 * A thread that a function can be called in: one that stands where no lock of the allocator or the
 * loader can be its own, by its native stack, and has room on that. Threads are paused one after
 * the other, each for as long as it takes to unwind it; or all at once, where what is called needs
 * the loader or the allocator to be nobody's.
 */
#pragma once

#include "sampler/target/process.h"
#include "sampler/target/stillness.h"
#include "sampler/target/trace.h"

struct safe_search {
    int cancel_fd; /* readable: not wanted any more; -1: nobody can say so */
    unsigned patience_ms;
};

/*
 * Paused, and to be resumed by the caller. -ESRCH, -EPERM; -EBUSY: there was none, and why;
 * -ECANCELED: no more wanted.
 */
int safe_thread_find(struct process *process, const struct safe_search *wanted, struct pause *ret,
                     struct failure *why);

/* The same while all others stand, in `*ret_others`, which the caller ends, and where they do,
 * which it closes. Also -E2BIG. */
struct thread_places;
int safe_thread_find_quiet(struct process *process, const struct safe_search *wanted,
                           struct pause *ret, struct stillness *ret_others,
                           struct thread_places **ret_places, struct failure *why);
