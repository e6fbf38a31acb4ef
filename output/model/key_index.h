/* A set of small keys, numbered in the order in which they were added: the way from names to rows
 * of an array. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct key {
    uint64_t part[3];
};

struct key_index {    /* all zero is empty */
    struct key *keys; /* by number */
    uint32_t *slots;  /* a number + 1, or 0 */
    size_t count, room, slot_count;
};

/* The key's number; a new key gets the next one, which `count` told before. -ENOMEM. */
int64_t key_index_add(struct key_index *index, struct key key);

/* -ENOENT when it was not added. */
int64_t key_index_find(const struct key_index *index, struct key key);

void key_index_done(struct key_index *index);
