#include "output/model/key_index.h"

#include "sampler/base/error.h"

#include <stdlib.h>

enum { FIRST_KEYS = 64 };

static uint64_t key_hash(struct key key)
{
    uint64_t hash = 0;
    for (int i = 0; i < 3; i++) {
        hash = (hash ^ key.part[i]) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    return hash;
}

static int key_is(struct key a, struct key b)
{
    return a.part[0] == b.part[0] && a.part[1] == b.part[1] && a.part[2] == b.part[2];
}

/* The slot that holds the key, or the free one where it belongs. */
static size_t find_slot(const struct key_index *index, struct key key)
{
    size_t mask = index->slot_count - 1, slot = key_hash(key) & mask;
    while (index->slots[slot] && !key_is(index->keys[index->slots[slot] - 1], key))
        slot = (slot + 1) & mask;
    return slot;
}

/* At most half of the slots are taken, so that a search ends soon. */
static int index_grow(struct key_index *index)
{
    size_t room = index->room ? 2 * index->room : FIRST_KEYS;
    struct key *keys = realloc(index->keys, room * sizeof *keys);
    if (!keys)
        return -ENOMEM;
    index->keys = keys;
    uint32_t *slots = calloc(2 * room, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    free(index->slots);
    index->slots = slots;
    index->slot_count = 2 * room;
    index->room = room;
    for (size_t i = 0; i < index->count; i++)
        slots[find_slot(index, keys[i])] = (uint32_t)i + 1;
    return 0;
}

int64_t key_index_add(struct key_index *index, struct key key)
{
    if (index->count == index->room && index_grow(index))
        return -ENOMEM;
    uint32_t *slot = &index->slots[find_slot(index, key)];
    if (!*slot) {
        index->keys[index->count] = key;
        *slot = (uint32_t)++index->count;
    }
    return *slot - 1;
}

int64_t key_index_find(const struct key_index *index, struct key key)
{
    if (!index->slot_count)
        return -ENOENT;
    uint32_t slot = index->slots[find_slot(index, key)];
    return slot ? (int64_t)slot - 1 : -ENOENT;
}

void key_index_done(struct key_index *index)
{
    free(index->keys);
    free(index->slots);
    *index = (struct key_index){ 0 };
}
