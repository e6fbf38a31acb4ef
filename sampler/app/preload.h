/* A command that is to load a library of ours before all others: its environment, and whether its
 * loader would do so without complaining on the command's own streams. */
#pragma once

/* Our own environment with the library in front of all that LD_PRELOAD names. One piece, which the
 * caller frees; NULL: out of memory. */
char **preload_environment(const char *library);

/* Why not; NULL: nothing speaks against it, but only its start will tell. `path` is the file that
 * the command begins with. */
const char *preload_refusal(const char *path, char *const *argv, const char *library);
