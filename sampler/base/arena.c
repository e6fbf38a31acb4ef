#include "sampler/base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_LEAST = 64 << 10, BLOCK_MOST = 4 << 20 };

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    alignas(16) char bytes[];
};

/* Twice as large as the one before it: there are never many to look through. */
static struct arena_block *block_new(size_t size, size_t before)
{
    size_t usual = before < BLOCK_LEAST ? BLOCK_LEAST : 2 * before;
    usual = usual < BLOCK_MOST ? usual : BLOCK_MOST;
    size = size < usual ? usual : size;
    struct arena_block *block = malloc(sizeof *block + size);
    if (block)
        *block = (struct arena_block){ .size = size };
    return block;
}

/* The first block with room, also one that was passed over, or a new last one: the same again fits
 * the same blocks. */
static struct arena_block *block_find(struct arena *arena, size_t size)
{
    struct arena_block **slot = &arena->first;
    size_t before = 0;
    for (; *slot && (*slot)->size - (*slot)->used < size; slot = &(*slot)->next)
        before = (*slot)->size;
    if (!*slot)
        *slot = block_new(size, before);
    return *slot;
}

void *arena_take(struct arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + 15) & ~(size_t)15;
    struct arena_block *block = arena->current;
    if (!block || block->size - block->used < size)
        block = block_find(arena, size);
    if (!block)
        return NULL;
    arena->current = block;
    void *taken = block->bytes + block->used;
    block->used += size;
    return memset(taken, 0, size);
}

void arena_empty(struct arena *arena)
{
    for (struct arena_block *block = arena->first; block; block = block->next)
        block->used = 0;
    arena->current = arena->first;
}

void arena_done(struct arena *arena)
{
    while (arena->first) {
        struct arena_block *block = arena->first;
        arena->first = block->next;
        free(block);
    }
    arena->current = NULL;
}
