/*
 * What earlier walks of a stack came to, so that the next one does not look again for what has not
 * changed: where a walk comes to a position that is known, and all of the stack from there on is as
 * it was, the rest of the walk is as it was. Some stacks are remembered, those not walked for the
 * longest are forgotten, and all at walk_memory_forget().
 */
#pragma once

#include "symbols/unwinder.h"

struct walk_memory;

/* Between two steps of a walk. */
struct walk_position {
    remote_addr ip, sp, fp;
    bool interrupted; /* ip is the instruction to run next, not one after a call */
    bool complete;    /* all registers that a frame leaves alone are known */
};

int walk_memory_new(struct walk_memory **ret);
void walk_memory_free(struct walk_memory *memory);
void walk_memory_forget(struct walk_memory *memory);

/* A walk of this stack begins; the image is borrowed until walk_memory_end(). */
void walk_memory_begin(struct walk_memory *memory, const struct stack_image *image);

/* The walk has come to a caller's position. All frames from there on go to `ret_frames`: how many;
 * 0: not known, walk on. */
size_t walk_memory_find(struct walk_memory *memory, const struct walk_position *position,
                        struct native_frame *ret_frames, size_t capacity);

/* The frame at this position was found by walking. */
void walk_memory_add(struct walk_memory *memory, const struct walk_position *position,
                     const struct native_frame *frame);

/* What was found is remembered in place of the stack's last walk. */
void walk_memory_end(struct walk_memory *memory);
