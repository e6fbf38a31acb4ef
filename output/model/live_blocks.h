/*
 * The sampled blocks of one process that are live, by its own number of each. A block that grew is
 * of several parts, each from the line that made it grow; it shrinks from the newest on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block_part {
    double weight_bytes;
    uint64_t size_bytes, born_ns;
    uint32_t line, function; /* numbers of tallies */
    uint32_t stack;          /* node of the account's table, or STACK_ROOT: of none that is kept */
    uint32_t next;           /* the part before it, or none */
    bool python;
};

struct live_blocks { /* all zero is empty */
    struct block_slot {
        uint64_t block;
        uint32_t part; /* 1 + the number of the newest; 0: a free slot */
    } * slots;
    struct block_part *parts;
    size_t block_count, slot_count; /* a power of two */
    size_t part_count, part_room;   /* those in use, and those ever used, and room */
    size_t used;
    uint32_t free_part; /* 1 + the number of the first of those that were given back */
};

/* One part more. 0 or -ENOMEM. */
int live_blocks_push(struct live_blocks *blocks, uint64_t block, const struct block_part *part);

/* The newest part, to look at or to change; NULL: there is no such block. */
struct block_part *live_blocks_top(const struct live_blocks *blocks, uint64_t block);

/* What all of its parts were told to have. */
uint64_t live_blocks_size(const struct live_blocks *blocks, uint64_t block);

/* Takes the newest part out; false: there is no such block. */
bool live_blocks_pop(struct live_blocks *blocks, uint64_t block, struct block_part *ret);

/* Any block, to empty it all; false: there is none. Starts looking at `*at`, which is 0 first. */
bool live_blocks_any(const struct live_blocks *blocks, size_t *at, uint64_t *ret_block);

/* Stacks have new numbers: `moved` has that of each of the `count` old ones, or STACK_NONE. */
void live_blocks_move_stacks(struct live_blocks *blocks, const uint32_t *moved, size_t count);

void live_blocks_done(struct live_blocks *blocks);
