/* An array that grows by doubling: room for one more behind `count`. */
#pragma once

#include <errno.h>
#include <stdlib.h>

static inline int array_grow(void *items, size_t count, size_t *room, size_t item_size)
{
    void **slot = items;
    if (count < *room)
        return 0;
    size_t wanted = *room ? 2 * *room : 16;
    void *grown = realloc(*slot, wanted * item_size);
    if (!grown)
        return -ENOMEM;
    *slot = grown;
    *room = wanted;
    return 0;
}

/* `items` is the variable that points to them. */
#define ARRAY_GROW(items, count, room) array_grow(&(items), (count), &(room), sizeof *(items))
