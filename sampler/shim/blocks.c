#define _GNU_SOURCE 1 /* syscall */

#include "sampler/shim/blocks.h"

#include "sampler/shim/space.h"

#include <string.h>

/*
 * Levels of growing size; a bucket is one cache line of addresses. An address goes into the first
 * level whose bucket for it has room, so few are in use, and what is not sampled is known after a
 * cache line for each.
 */
enum {
    BUCKET = 8,
    FIRST_BUCKETS = 1 << 8,
    GROWTH_SHIFT = 3,
    LEVELS = 5, /* nine million blocks */
    FILTER_FULL = 255,
};

#define BUSY ((uintptr_t)1)

struct bucket {
    _Alignas(64) _Atomic uintptr_t addresses[BUCKET];
};

_Atomic uint8_t block_filter[BLOCK_FILTER_SIZE];
/* the blocks follow their addresses, in the same order */
static _Atomic(struct bucket *) levels[LEVELS];

static size_t level_buckets(unsigned level)
{
    return (size_t)FIRST_BUCKETS << level * GROWTH_SHIFT;
}

static size_t level_size(unsigned level)
{
    return level_buckets(level) * (sizeof(struct bucket) + BUCKET * sizeof(struct block));
}

static struct bucket *level_open(unsigned level)
{
    struct bucket *found = atomic_load_explicit(&levels[level], memory_order_acquire);
    if (found)
        return found;
    struct bucket *mapped = space_reserve(level_size(level));
    if (!mapped)
        return NULL;
    if (atomic_compare_exchange_strong(&levels[level], &found, mapped))
        return mapped;
    space_return(mapped, level_size(level));
    return found;
}

static size_t bucket_index(uintptr_t address, unsigned level)
{
    uint64_t mixed = (uint64_t)(address >> 4) * 0x9E3779B97F4A7C15u;
    return (size_t)(mixed >> 32) & (level_buckets(level) - 1);
}

static struct block *block_at(struct bucket *buckets, unsigned level, size_t bucket, size_t index)
{
    return (struct block *)(buckets + level_buckets(level)) + bucket * BUCKET + index;
}

/* ---- the filter ---- */

static void filter_add(const void *address, int change)
{
    _Atomic uint8_t *count = &block_filter[block_filter_index(address)];
    uint8_t old = atomic_load_explicit(count, memory_order_relaxed);
    while (old != FILTER_FULL &&
           !atomic_compare_exchange_weak_explicit(count, &old, (uint8_t)(old + change),
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

void blocks_mark(const void *address)
{
    atomic_store_explicit(&block_filter[block_filter_index(address)], FILTER_FULL,
                          memory_order_relaxed);
}

/* ---- the levels ---- */

static bool bucket_add(struct bucket *buckets, unsigned level, uintptr_t address,
                       const struct block *block)
{
    size_t bucket = bucket_index(address, level);
    for (size_t i = 0; i < BUCKET; i++) {
        _Atomic uintptr_t *slot = &buckets[bucket].addresses[i];
        uintptr_t empty = 0;
        if (!atomic_compare_exchange_strong_explicit(slot, &empty, BUSY, memory_order_acquire,
                                                     memory_order_relaxed))
            continue;
        *block_at(buckets, level, bucket, i) = *block;
        atomic_store_explicit(slot, address, memory_order_release);
        return true;
    }
    return false;
}

bool blocks_add(const void *address, const struct block *block)
{
    filter_add(address, 1);
    for (unsigned level = 0; level < LEVELS; level++) {
        struct bucket *buckets = level_open(level);
        if (!buckets)
            break;
        if (bucket_add(buckets, level, (uintptr_t)address, block))
            return true;
    }
    filter_add(address, -1);
    return false;
}

static bool bucket_take(struct bucket *buckets, unsigned level, uintptr_t address,
                        struct block *ret)
{
    size_t bucket = bucket_index(address, level);
    for (size_t i = 0; i < BUCKET; i++) {
        _Atomic uintptr_t *slot = &buckets[bucket].addresses[i];
        if (atomic_load_explicit(slot, memory_order_acquire) != address)
            continue;
        *ret = *block_at(buckets, level, bucket, i);
        atomic_store_explicit(slot, 0, memory_order_release);
        return true;
    }
    return false;
}

bool blocks_take(const void *address, struct block *ret)
{
    /* NULL is what an empty place holds, and free(NULL) is asked for often */
    for (unsigned level = 0; address && level < LEVELS; level++) {
        struct bucket *buckets = atomic_load_explicit(&levels[level], memory_order_acquire);
        if (!buckets)
            break;
        if (bucket_take(buckets, level, (uintptr_t)address, ret)) {
            filter_add(address, -1);
            return true;
        }
    }
    return false;
}

void blocks_forget(void)
{
    for (unsigned level = 0; level < LEVELS; level++) {
        struct bucket *buckets = atomic_load(&levels[level]);
        if (buckets)
            space_empty(buckets, level_size(level));
    }
    /* most of it was never written to; what was marked stays marked */
    for (size_t i = 0; i < BLOCK_FILTER_SIZE; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, (const uint8_t *)block_filter + i, sizeof word);
        for (size_t j = i; word && j < i + sizeof word; j++)
            if (block_filter[j] != FILTER_FULL)
                atomic_store_explicit(&block_filter[j], 0, memory_order_relaxed);
    }
}
