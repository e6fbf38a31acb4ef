/* The names that Python's threading module knows the threads of an interpreter by. */
#pragma once

#include "pyabi/layout.h"

#include <stdint.h>

/*
 * For every thread in threading._active: its identity (threading.get_ident()) and its name, as
 * strings.h decodes it; the name is gone after the call. Ends early with what `name` returns if
 * that is not 0. Threads of the target may run: one whose entry cannot be read is left out. -ENOENT
 * when threading is not imported, and else as dict_find.
 */
int thread_names_walk(struct remote *memory, const struct py_layout *layout,
                      remote_addr interpreter,
                      int (*name)(void *context, uint64_t ident, const char *name), void *context);
