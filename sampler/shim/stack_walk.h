/*
 * The calling thread's own Python stack, which stands still meanwhile. Bounded, and ends at the
 * first link that makes no sense.
 */
#pragma once

#include "sampler/shim/field.h"
#include "sampler/shim/python.h"

struct walked_stack {
    struct record_frame frames[RING_FRAMES]; /* innermost first */
    uint32_t count, left_out;
};

/* The id of a code object, CODE_INTERNAL, or 0. */
typedef uint32_t (*code_namer)(const struct ring_python *layout, struct field_reader *reader,
                               const void *code);

/*
 * `state`: the thread's PyThreadState. With a careful reader it may be in the middle of pushing or
 * popping a frame: what is no frame of a code object is left out, and a chain that leads astray is
 * no stack.
 */
void stack_walk(const struct python *python, const void *state, struct field_reader *reader,
                code_namer name, struct walked_stack *ret);
