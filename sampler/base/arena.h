/* Memory that is given out piece by piece and taken back all at once. Pieces keep their address. */
#pragma once

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *first, *current; /* all zero is an empty arena */
};

/* Zeroed, aligned for anything; NULL when out of memory. */
void *arena_take(struct arena *arena, size_t size);

/* Everything given out is gone; the memory is kept for the next time. */
void arena_empty(struct arena *arena);

void arena_done(struct arena *arena);
