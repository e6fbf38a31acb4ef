/*
 * What stands in the way of an injection, known before anything of the target is touched: each is
 * one sentence. And where the shim is, when an earlier injection has left it there.
 */
#pragma once

#include "sampler/target/process.h"
#include "sampler/target/trace.h"
#include "symbols/maps.h"

/* 0 or -ENOTSUP; -EBUSY: it is stopped, or another profiler's; -ESRCH. */
int injection_check(struct process *process, const struct maps *maps, struct failure *why);

/* The same of a thread that stands: filters are each thread's own. 0, -ENOTSUP, -ESRCH. */
int injection_check_thread(const struct process *process, const struct pause *pause,
                           struct failure *why);

/* Where the next file that has been brought under that name is mapped, the first after NULL; or
 * NULL. */
const struct mapping *brought_next(const struct maps *maps, const char *name,
                                   const struct mapping *after);

/* Is it the same as the file at `path`? By how it begins, with the number of its build. */
bool brought_is(struct process *process, remote_addr at, const char *path);
