/*
 * The calling thread's own Python stack, which stands still meanwhile. Bounded, and ends at the
 * first link that makes no sense.
 */
#pragma once

#include "sampler/shim/ring_layout.h"

struct walked_stack {
    struct record_frame frames[RING_FRAMES]; /* innermost first */
    uint32_t count, left_out;
};

/* The id of a code object, CODE_INTERNAL, or 0. */
typedef uint32_t (*code_namer)(const struct ring_python *layout, const void *code);

/* `state`: the thread's PyThreadState. */
void stack_walk(const struct ring_python *layout, const void *state, code_namer name,
                struct walked_stack *ret);
