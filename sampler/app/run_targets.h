/* Whom a run profiles: the command that it starts, or the processes that it is told. */
#pragma once

#include "sampler/app/run_state.h"

/* Whose code is the program's own: what the command runs, or what the targets do, of which the
 * first (0) is the profile's program. */
void run_learn_program(struct run *run, size_t index, const char *const *argv, const char *cwd);

/* What only the process knows: which script a first line or an exec led to, and where a module
 * lies. Before each report. */
void run_learn_first(struct run *run);

void run_forget_args(struct run *run);

/* The command in the words of the options; the caller frees the list. */
int run_learn_command(struct run *run, char ***ret_command, struct failure *why);

/* Starts it. `*ret_status` is set when there is no such command, or it cannot be run. */
int run_launch(struct run *run, int *ret_status, struct failure *why);

int run_attach(struct run *run, struct failure *why);
