/* Work that falls into pieces which know nothing of each other, on all cores. */
#pragma once

#include <stddef.h>

/*
 * Calls `piece` once for each index below `count`, in any order and on several threads, the
 * caller's among them, and returns when all are done. An error ends it, once pieces that have begun
 * are done: 0 or that error. That there is no room for another thread is none.
 */
int parallel_run(size_t count, int (*piece)(void *context, size_t index), void *context);
