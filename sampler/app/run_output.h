/* The profile of a run as it stands, on its way to a file or a terminal. */
#pragma once

#include "sampler/app/run_state.h"

/* How the sampling goes, up to now. */
void run_look(struct run *run, uint64_t now_ns, struct sampling_event *ret);

/* Where the profile goes; 0, -ENAMETOOLONG, or -ENOENT: to a terminal. `into` has SAVE_PATH_SIZE.
 */
int run_output_path(const struct run *run, char *into);

/*
 * 0 and where it went (SAVE_PATH_SIZE; "" is a terminal), which the closing words tell of at the
 * `last` time. -ENODATA: there is nothing to show, so nothing was written. Otherwise it could not
 * be written anywhere.
 */
int run_write(struct run *run, bool last, char *ret_path, struct failure *why);

/* The same without asking the processes: of a profile that was told all. */
int run_write_told(struct run *run, bool last, char *ret_path, struct failure *why);
