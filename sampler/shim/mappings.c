/*
 * The regions that the program mapped and that were sampled. There are few, and they end in pieces,
 * so they are a list that each munmap goes through. Lock-free as the table of blocks is: a region
 * is the thread's that has claimed it.
 */
#include "sampler/shim/mappings.h"

#include "sampler/shim/account.h"
#include "sampler/shim/records.h"

enum { REGIONS = 1 << 16 }; /* as many as Linux lets a process have, unless it is told otherwise */

#define BUSY ((uintptr_t)1)

struct region {
    _Atomic uintptr_t start; /* 0: free */
    _Atomic uintptr_t end;
};

/* Apart, as only the regions are gone through. What was never used is no memory yet. */
static struct region regions[REGIONS];
static struct block region_blocks[REGIONS];
static _Atomic uint32_t region_limit; /* one past the last that was ever used */
static _Atomic uint32_t region_hint;  /* where a free one is looked for first */

static struct block *region_block(const struct region *region)
{
    return &region_blocks[region - regions];
}

static void limit_raise(uint32_t limit)
{
    uint32_t old = atomic_load(&region_limit);
    while (old < limit && !atomic_compare_exchange_weak(&region_limit, &old, limit)) {
    }
}

static void region_publish(struct region *region, uintptr_t start, uintptr_t end)
{
    atomic_store_explicit(&region->end, end, memory_order_relaxed);
    atomic_store_explicit(&region->start, start, memory_order_release);
}

static void region_release(struct region *region)
{
    uint32_t index = (uint32_t)(region - regions);
    region_publish(region, 0, 0);
    if (index < atomic_load_explicit(&region_hint, memory_order_relaxed))
        atomic_store_explicit(&region_hint, index, memory_order_relaxed);
}

static void region_add(uintptr_t start, uintptr_t end, const struct block *block)
{
    uint32_t first = atomic_load_explicit(&region_hint, memory_order_relaxed);
    for (uint32_t i = 0; i < REGIONS; i++) {
        uint32_t index = (first + i) % REGIONS;
        struct region *region = &regions[index];
        uintptr_t empty = 0;
        if (!atomic_compare_exchange_strong(&region->start, &empty, BUSY))
            continue;
        *region_block(region) = *block;
        region_publish(region, start, end);
        limit_raise(index + 1);
        atomic_store_explicit(&region_hint, (index + 1) % REGIONS, memory_order_relaxed);
        return;
    }
    block_end(block); /* it cannot be followed */
    ring_tell_gap(&recorder.ring, GAP_MAPPINGS);
}

/* What is left is a piece in front, behind, or both: then the larger one is followed on. */
static void region_cut(struct region *region, uintptr_t start, uintptr_t end, uintptr_t from,
                       uintptr_t to)
{
    uintptr_t in_front = from > start ? from - start : 0, behind = end > to ? end - to : 0;
    if (!in_front && !behind) {
        block_end(region_block(region));
        region_release(region);
        return;
    }
    block_shrink(region_block(region), in_front > behind ? in_front : behind);
    if (in_front > behind)
        region_publish(region, start, from);
    else
        region_publish(region, to, end);
}

/* The next region from `*index` on that shares bytes with [from, to), claimed; or NULL. */
static struct region *region_claim(uint32_t *index, uintptr_t from, uintptr_t to,
                                   uintptr_t *ret_start)
{
    uint32_t limit = atomic_load_explicit(&region_limit, memory_order_acquire);
    for (; *index < limit; ++*index) {
        struct region *region = &regions[*index];
        uintptr_t start = atomic_load_explicit(&region->start, memory_order_acquire);
        if (start <= BUSY || start >= to ||
            atomic_load_explicit(&region->end, memory_order_relaxed) <= from ||
            !atomic_compare_exchange_strong(&region->start, &start, BUSY))
            continue;
        ++*index;
        *ret_start = start;
        return region;
    }
    return NULL;
}

void account_mapped(const void *address, size_t size)
{
    struct block block = { .size = size };
    struct stay stay = stay_begin();
    if (growth_sample(&block, size, DOMAIN_MAPPED))
        region_add((uintptr_t)address, (uintptr_t)address + size, &block);
    stay_end(stay);
}

void account_unmapped(const void *address, size_t size)
{
    uintptr_t from = (uintptr_t)address, to = from + size, start;
    struct region *region;
    uint32_t index = 0;
    if (!atomic_load_explicit(&region_limit, memory_order_relaxed))
        return;
    struct stay stay = stay_begin();
    while ((region = region_claim(&index, from, to, &start)))
        region_cut(region, start, atomic_load(&region->end), from, to);
    stay_end(stay);
}

static bool region_take(const void *address, size_t size, struct block *ret)
{
    uintptr_t start;
    uint32_t index = 0;
    uintptr_t from = (uintptr_t)address;
    struct region *region = region_claim(&index, from, from + size, &start);
    if (!region)
        return false;
    *ret = *region_block(region);
    region_release(region);
    return true;
}

/* In a system call's time, so the order of the two does not matter as it does to blocks: whoever
 * maps the old place meanwhile finds a region there that is cut. */
void account_remapped(const void *old, size_t old_size, const void *new, size_t size)
{
    struct stay stay = stay_begin();
    struct block block = { .size = old_size };
    bool known = region_take(old, old_size, &block);
    if (size > block.size)
        known |= growth_sample(&block, size - block.size, DOMAIN_MAPPED);
    else if (known && size < block.size)
        block_shrink(&block, size);
    block.size = size;
    if (known)
        region_add((uintptr_t) new, (uintptr_t) new + size, &block);
    stay_end(stay);
}

void mappings_forget(void)
{
    for (uint32_t i = 0; i < atomic_load(&region_limit); i++)
        atomic_store(&regions[i].start, 0);
}
