/*
 * What the processes of a run allocate: the ring and the shim are made ready for a command, or
 * brought into a target, and taken away after it; what comes through the ring goes into the
 * profile. Whatever stands in a command's way costs the run its memory, and no more: a note says
 * why.
 */
#pragma once

#include "sampler/app/run_state.h"

bool run_memory_wanted(const struct options *options);

/* Before the command starts. 0 or -ENOMEM. */
int run_memory_open(struct run *run, char *const *command);

/* A target that runs already: the shim is brought into it, and with run_memory_close() disarmed. 0,
 * also where nobody wants to know, or why it cannot be done. */
int run_memory_attach(struct run *run, pid_t pid, struct failure *why);

/* For the command; NULL: it gets ours. */
char **run_memory_environment(const struct run *run);

/* Afterwards nobody records, and nothing is left but what a living process may need. */
void run_memory_close(struct run *run);

/* Reads the ring when that is due. 0 or -ENOMEM. */
int run_memory_follow(struct run *run, uint64_t now_ns);
uint64_t run_memory_deadline_ns(const struct run *run);

/* What threads of targets stood while the shim was brought, armed and disarmed. */
struct stood;
void run_memory_stood(const struct run *run, struct stood *ret);

/* All that was written up to now, and the losses, go into the profile; at the `last` time nobody
 * records any more. 0 or -ENOMEM. */
int run_memory_tell(struct run *run, bool last);

/* Whether to record; what was recorded until now is told. 0 or -ENOMEM. */
int run_memory_switch(struct run *run, bool on);

/* A process ended. 0 or -ENOMEM. */
int run_memory_end(struct run *run, pid_t pid);
