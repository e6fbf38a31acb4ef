/*
 * What was asked for blocks that were resized last, and not sampled. Allocators round up, some by a
 * quarter of the block, and nobody but them knows more than what they gave; by these few a block
 * that goes on growing grows by what is asked for. Lock-free, of a fixed size: the older ones of
 * too many are forgotten. Nobody tells of blocks that are freed, so what was given has to be the
 * same as it was, or it is another block's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Not there any more: the address may be another's soon. 0: nothing is known. */
uint64_t asked_sizes_take(const void *address);

/* What was asked for, of a block that was given so much; 0: that is another block. */
size_t asked_size(uint64_t taken, size_t given);

void asked_sizes_keep(const void *address, size_t asked, size_t given);
