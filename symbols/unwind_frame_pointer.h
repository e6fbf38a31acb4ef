/*
 * One step along the chain of frame records, for code that has no unwind tables but keeps a frame
 * pointer. Looks at the copied stack alone and believes a record only if it lies where a caller's
 * must.
 */
#pragma once

#include "symbols/unwinder.h"

#include <stdbool.h>

/* A word of the copied stack; false outside the copy. */
bool stack_image_word(const struct stack_image *image, remote_addr address, uint64_t *ret);

/* The caller's ip, sp and fp; its other registers are not known (count 0). */
bool frame_pointer_step(const struct stack_image *image, const struct registers *callee,
                        struct registers *ret_caller);

/* The caller of an address that holds no code: the call has been made, but nothing was pushed yet.
 */
bool frame_undo_call(const struct stack_image *image, const struct registers *callee,
                     struct registers *ret_caller);
