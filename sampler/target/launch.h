/*
 * A command as our child, as a shell would start it: our terminal, process group and streams, the
 * signal mask and dispositions that we inherited ourselves. It runs on when we end.
 */
#pragma once

#include "sampler/target/signals.h"

#include <stdint.h>

struct launch;

struct launch_end {
    int exit_status;      /* 128 + n when signal n ended it */
    uint64_t cpu_ns;      /* of the process itself, all its threads */
    uint64_t tree_cpu_ns; /* and of all descendants that were waited for */
};

/*
 * The file that a shell would run for the command, as execvp(3) has it. 0, -ENOENT, or -EACCES for
 * what is there and cannot be run.
 */
int launch_find(const char *command, char *into, size_t size);

/*
 * Returns when the program runs in the child (exec is done), or why it does not: -ENOENT (no such
 * command: exit status 127), -EACCES or -ENOEXEC (not executable: 126), another errno (125).
 * `signals` may be NULL; `environment`, too: it is ours then.
 */
int launch_start(char *const *argv, char **environment, const struct signals *signals,
                 struct launch **ret, struct failure *why);

/* Neither ends the child nor waits for it. */
void launch_close(struct launch *launch);

pid_t launch_pid(const struct launch *launch);

/* 125, 126 or 127, as a shell would say it. */
int launch_failed_status(int error);

/* It has, whether that was taken or not: until then the kernel tells of it and its children. */
bool launch_has_ended(const struct launch *launch);

/* Takes the child's end and no stop of a traced thread: 1, again at every later call; 0 while it
 * lives. */
int launch_reap(struct launch *launch, struct launch_end *ret);

/* Hands a SIGNAL_END on to the child, unless the terminal has given it one already. */
void launch_forward(struct launch *launch, const struct signal_event *event);
