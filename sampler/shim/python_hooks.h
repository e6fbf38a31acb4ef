/*
 * The allocators of CPython (raw, mem, obj) with ours around them. What they ask of malloc or mmap
 * in turn is theirs, and not counted again.
 */
#pragma once

#include "sampler/shim/thread.h"

/* Looks for a CPython in the process. For the constructor. */
void python_hooks_begin(void);

/* Somebody makes a key of threads. Is that one? */
void python_hooks_key_made(const void *caller);

/* Sees to it that ours are the outermost while it starts: PYTHONMALLOC and -X dev set all of them
 * again. Called from within the shim only. */
void python_hooks_look(void);

/* May they be set again any time? */
bool python_hooks_unsettled(void);

/* In a process that ran already: `recorder.python` is known, and other threads allocate. What has
 * been put around ours since stays, with ours below it. False when some of Python's memory does
 * not, or did not all the time, come by. */
bool python_hooks_attach(void);
bool python_hooks_detach(void);
