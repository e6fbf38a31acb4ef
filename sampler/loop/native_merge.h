/* One stack out of two: Python frames stand where the C frame of their evaluation loop was. */
#pragma once

#include "pyabi/pyabi.h"
#include "sampler/base/arena.h"
#include "sampler/base/event.h"
#include "symbols/native_symbols.h"
#include "symbols/unwinder.h"

struct merge_input {
    const struct python *python;
    const struct py_stack *stack;
    const struct native_frame *native;
    size_t native_count;
    const struct stack_image *image; /* NULL when there are no native frames */
    struct native_symbols *symbols;
};

/*
 * By addresses, never by counts: a run of Python frames goes where its anchor lies on the C stack.
 * Whatever does not fit is kept, Python below and native above; `*ret_placed` tells whether all did
 * fit. Frames are taken from the arena. Count or -ENOMEM.
 */
int frames_merge(const struct merge_input *input, struct arena *arena,
                 const struct frame_event **ret_frames, bool *ret_placed);
