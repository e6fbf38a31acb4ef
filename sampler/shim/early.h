/*
 * A small store of the shim's own, for what is asked for before there is an allocator to ask. Its
 * blocks are never reused; the filter of blocks.h says of them that they are to be looked at more
 * closely.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* NULL when it is used up. One thread runs. */
void *early_allocate(size_t size);
bool early_has(const void *address);

/* How many bytes may be read from there. */
size_t early_size(const void *address);
