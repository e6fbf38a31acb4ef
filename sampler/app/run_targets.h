/* Whom a run profiles: the command that it starts, or the processes that it is told. */
#pragma once

#include "sampler/app/run_state.h"

/* Whose code is the program's own: what the command or, attaching, the first target runs. */
void run_learn_program(struct run *run, const char *const *argv, const char *cwd);

/* The command in the words of the options; the caller frees the list. */
int run_learn_command(struct run *run, char ***ret_command, struct failure *why);

/* Starts it. `*ret_status` is set when there is no such command, or it cannot be run. */
int run_launch(struct run *run, int *ret_status, struct failure *why);

int run_attach(struct run *run, struct failure *why);
