/* A profile on its way to a file: written beside it and renamed, so that there is always a whole
 * one; links to it stay. */
#pragma once

#include "sampler/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

enum { SAVE_PATH_SIZE = 4096 };

/* What stands for standard output where a file's name is wanted; such a file is "./-". */
static inline bool save_is_stdout(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

/*
 * %p, %h and %r in the pattern become the pid, the host and the rank (from the environment of MPI
 * and its kin; 0 without one). 0 or -ENAMETOOLONG.
 */
int save_path(const char *pattern, pid_t pid, char *into, size_t size);

/* The same with another's rank (rank.h). */
int save_path_of(const char *pattern, pid_t pid, int rank, char *into, size_t size);

/* Before there is anything to save: would it find its place? 0, or a negative errno and the
 * sentence. */
int save_check(const char *path, struct failure *why);

/* What is to be saved. It may be asked more than once, and writes the whole each time: 0 or a
 * negative errno. */
struct save_source {
    int (*write)(const struct save_source *self, FILE *into);
};

/*
 * Writes it under the name: where its links lead to, and into what is no file or is held open
 * (/dev/stdout), at its end. When that cannot be, it goes to the temporary folder: still 0, with
 * the sentence in `why` and the name in `ret_path`. Negative errno when even that failed. Nothing
 * is held in memory: a profile's text may be larger than all else that is known.
 */
int save_write(const char *path, const struct save_source *source, char *ret_path,
               struct failure *why);

/* The same of a text that is there. */
int save_text(const char *path, const char *text, size_t size, char *ret_path, struct failure *why);
