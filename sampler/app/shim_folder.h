/*
 * Where the processes of a launched run find the shim and its ring: a folder in /tmp that every
 * user can enter and nobody else can write to, so that the loader finds the library whoever a child
 * becomes. Held locked while its profiler lives; one that a killed profiler left is removed by the
 * next, once no process names it any more.
 */
#pragma once

#include "sampler/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Is it loaded into that process, and has it found its ring, the memory file of that inode? 0: any.
 * Who sees another /proc does not. */
bool shim_has_ring(pid_t pid, ino_t ring);

/* The library beside the program, as it is built, or where it was installed. */
int shim_library_find(char *into, size_t size, struct failure *why);

struct shim_folder;

/* Removes what others left, too. */
int shim_folder_open(const char *library, int ring_fd, struct shim_folder **ret,
                     struct failure *why);

const char *shim_folder_library(const struct shim_folder *folder);

/* For LD_PRELOAD: a path with a token that glibc replaces, and under which another C library finds
 * nothing. musl passes over a library that is not there, but ends a program for one that it cannot
 * link. */
const char *shim_folder_preload(const struct shim_folder *folder);

/* Nobody finds the ring any more. The library stays for those that may load it yet, if any may. */
void shim_folder_close(struct shim_folder *folder, bool may_be_used);
