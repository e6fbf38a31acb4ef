/*
 * One process at one moment: which of its threads ran, for how long, where each is, and how much of
 * the time since the last tick the whole process was idle. Threads that did not run cost one small
 * read, and ever fewer of those.
 */
#pragma once

#include "sampler/loop/stacks.h"

struct target;

/* Told by the caller, who knows which files are shown: does such a stack hold a line that idle time
 * may go to? */
struct idle_judge {
    void *context;
    bool (*takes)(void *context, const struct frame_event *frames, size_t count);
};

/* Opens the Python in the process, which the target then owns (also when this fails). Errors as
 * stack_reader_open. */
int target_open(struct process *process, const struct stack_options *options, uint64_t now_ns,
                struct target **ret, struct failure *why);
void target_close(struct target *target);

/* The event lives until the next call. 0, or -ESRCH when the process has ended, -EAGAIN: nothing
 * could be seen. */
int target_tick(struct target *target, uint64_t now_ns, const struct idle_judge *judge,
                struct tick_event *ret);

/*
 * CPU time that was charged to threads but not yet told of, at the end: as one more tick. Of
 * `untold_ns`, by the account of the whole process, what no look has met goes to where the process
 * ran at the last one.
 */
int target_flush(struct target *target, uint64_t now_ns, uint64_t untold_ns,
                 struct tick_event *ret);

struct stack_reader *target_reader(struct target *target);
const struct process *target_process(const struct target *target);
pid_t target_pid(const struct target *target);
