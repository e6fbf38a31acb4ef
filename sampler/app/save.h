/* A profile on its way to a file: written beside it and renamed, so that there is always a whole
 * one. */
#pragma once

#include "sampler/base/error.h"

#include <stddef.h>
#include <sys/types.h>

enum { SAVE_PATH_SIZE = 4096 };

/*
 * %p, %h and %r in the pattern become the pid, the host and the rank (from the environment of MPI
 * and its kin; 0 without one). 0 or -ENAMETOOLONG.
 */
int save_path(const char *pattern, pid_t pid, char *into, size_t size);

/* Before there is anything to save: would it find its place? 0, or a negative errno and the
 * sentence. */
int save_check(const char *path, struct failure *why);

/*
 * Writes the text under the name. When that cannot be, it goes to the temporary folder: still 0,
 * with the sentence in `why` and the name in `ret_path`. Negative errno when even that failed.
 */
int save_text(const char *path, const char *text, size_t size, char *ret_path, struct failure *why);
