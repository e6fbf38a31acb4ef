/*
 * The allocators of CPython (raw, mem, obj) with ours around them. What they ask of malloc or mmap
 * in turn is theirs, and not counted again.
 */
#pragma once

#include "sampler/shim/thread.h"

/* Looks for a CPython in the process, and sees to it that ours are the outermost while it starts:
 * PYTHONMALLOC and -X dev set all of them again. Called from within the shim only. */
void python_hooks_look(void);

/* May they be set again any time? */
bool python_hooks_unsettled(void);
