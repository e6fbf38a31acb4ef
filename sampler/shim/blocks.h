/*
 * The sampled blocks of this process that still live, by address. Lock-free: at any time an address
 * belongs to one thread alone, which adds or takes it; others pass by. A block that was not sampled
 * costs one byte of a filter to know.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block {
    uint64_t number; /* 0: nobody was told of it */
    uint64_t size;   /* as it was asked for last */
    uint64_t told;   /* of that, what was sampled and told */
    uint64_t weight; /* all that this stands for */
    uint64_t lost;   /* what else it would stand for if there had been room to tell */
};

enum { BLOCK_FILTER_SIZE = 1 << 18 };

/* How many blocks have an address with this remainder; 255: once that many. Neighbours in memory
 * are neighbours here, so that what a program works on meets few cache lines. */
extern _Atomic uint8_t block_filter[BLOCK_FILTER_SIZE] __attribute__((visibility("hidden")));

static inline size_t block_filter_index(const void *address)
{
    return (((uintptr_t)address >> 4) + ((uintptr_t)address >> 21)) & (BLOCK_FILTER_SIZE - 1);
}

static inline bool blocks_may_have(const void *address)
{
    return atomic_load_explicit(&block_filter[block_filter_index(address)], memory_order_relaxed);
}

/* Makes the filter say yes for good: to be looked at more closely. */
void blocks_mark(const void *address);

/* False when there is no room for another. */
bool blocks_add(const void *address, const struct block *block);

/* False when it is not there. */
bool blocks_take(const void *address, struct block *ret);

/* Empties it: of a child after fork, where one thread runs. */
void blocks_forget(void);
