/* A run that is steered from outside: the sockets that it listens at, and what it does for them. */
#pragma once

#include "sampler/app/run_state.h"

#include <poll.h>

/* Listens for commands about that target. 0, or -EBUSY with a sentence that names its profiler; a
 * run that cannot listen for another reason goes on, and says so. */
int run_control_open(struct run *run, pid_t pid, struct failure *why);

/* Whoever said stop is told how it ended; nobody is listened to any more. */
void run_control_close(struct run *run, int error, const char *path, const struct failure *why);

/* What to wait for: as many as there are targets. Returns their count. */
size_t run_control_poll(const struct run *run, struct pollfd *into);

/* Does what was asked for meanwhile. 0 or -ENOMEM. */
int run_control_follow(struct run *run);
