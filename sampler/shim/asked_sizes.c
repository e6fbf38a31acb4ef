#include "sampler/shim/asked_sizes.h"

#include <stdatomic.h>
#include <stdbool.h>

/*
 * A word for each: the rest of the address that its bucket leaves, a few bits of what was given,
 * and how much of that nobody asked for. A bucket is a cache line.
 */
enum {
    BUCKET = 8,
    BUCKETS_SHIFT = 13, /* half a megabyte, of which only what is used takes memory */
    BUCKETS = 1 << BUCKETS_SHIFT,
    SURPLUS_BITS = 27,
    GIVEN_BITS = 7,
    ALIGNMENT_SHIFT = 4,
    ADDRESS_BITS = 47,
};
_Static_assert(ADDRESS_BITS - ALIGNMENT_SHIFT - BUCKETS_SHIFT + GIVEN_BITS + SURPLUS_BITS <= 64,
               "a word holds all of it");

#define SURPLUS_LIMIT ((size_t)1 << SURPLUS_BITS)

struct bucket {
    _Alignas(64) _Atomic uint64_t words[BUCKET];
};

static struct bucket buckets[BUCKETS];

static struct bucket *bucket_of(const void *address)
{
    uint64_t number = (uintptr_t)address >> ALIGNMENT_SHIFT;
    return &buckets[(number ^ number >> BUCKETS_SHIFT) & (BUCKETS - 1)];
}

static uint64_t address_bits(const void *address)
{
    return (uint64_t)(uintptr_t)address >> (ALIGNMENT_SHIFT + BUCKETS_SHIFT)
                                               << (GIVEN_BITS + SURPLUS_BITS);
}

/* Never 0, so that no word is. */
static uint64_t given_bits(size_t given)
{
    return (given * 0x9E3779B97F4A7C15u >> (64 - GIVEN_BITS) | 1) << SURPLUS_BITS;
}

static bool word_is_of(uint64_t word, const void *address)
{
    return word && word >> (GIVEN_BITS + SURPLUS_BITS) ==
                       address_bits(address) >> (GIVEN_BITS + SURPLUS_BITS);
}

uint64_t asked_sizes_take(const void *address)
{
    struct bucket *bucket = bucket_of(address);
    for (size_t i = 0; i < BUCKET; i++) {
        uint64_t word = atomic_load_explicit(&bucket->words[i], memory_order_relaxed);
        if (!word_is_of(word, address))
            continue;
        atomic_store_explicit(&bucket->words[i], 0, memory_order_relaxed);
        return word;
    }
    return 0;
}

size_t asked_size(uint64_t taken, size_t given)
{
    size_t surplus = taken & (SURPLUS_LIMIT - 1);
    bool same = (taken & (((uint64_t)1 << GIVEN_BITS) - 1) << SURPLUS_BITS) == given_bits(given);
    return taken && same && surplus < given ? given - surplus : 0;
}

/* Where there is no room another has to go, one that the address chooses: as good as any. */
static _Atomic uint64_t *place_of(const void *address)
{
    struct bucket *bucket = bucket_of(address);
    for (size_t i = 0; i < BUCKET; i++) {
        uint64_t word = atomic_load_explicit(&bucket->words[i], memory_order_relaxed);
        if (!word || word_is_of(word, address))
            return &bucket->words[i];
    }
    return &bucket->words[((uintptr_t)address >> (ALIGNMENT_SHIFT + BUCKETS_SHIFT)) % BUCKET];
}

void asked_sizes_keep(const void *address, size_t asked, size_t given)
{
    if (asked && asked <= given && given - asked < SURPLUS_LIMIT)
        atomic_store_explicit(place_of(address),
                              address_bits(address) | given_bits(given) | (given - asked),
                              memory_order_relaxed);
}
