/*
 * A moment when all threads of a process stand, and none of them in the loader: a call that one of
 * them makes then may ask the loader, and sees its lists as they are. Those that stand there are
 * let on for a moment. Nobody waits until all have left the allocator at once: where a call has to
 * wait for one of those, they are let go, and the others stand on.
 */
#pragma once

#include "sampler/loop/thread_place.h"
#include "sampler/target/stillness.h"

/* 0; -EAGAIN: not now, as a thread (0: nobody in particular) does not come out of there, and
 * `*ret_obstacle` says why; -E2BIG, -EPERM, -ESRCH, -ENOMEM. */
int quiet_begin(struct process *process, struct thread_places *places, struct stillness *ret,
                const char **ret_obstacle, pid_t *ret_thread);

/* Those that are in the allocator run on. */
void quiet_loosen(struct thread_places *places, struct stillness *still);
