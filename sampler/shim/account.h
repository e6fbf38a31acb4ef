/*
 * What every hook reports to: what was allocated, freed, resized, mapped and copied. Here it is
 * decided what of it is a sample. The inline part is all that happens to nearly every block.
 */
#pragma once

#include "sampler/shim/blocks.h"
#include "sampler/shim/ring_layout.h"
#include "sampler/shim/thread.h"

/* The rare part, apart so that nothing is kept on the stack for it: returns the address. */
void *account_sample(void *address, size_t size, enum allocation_domain domain);

/* False when it is none of the allocator's, but of the early store. */
bool account_free(const void *address);
void account_copy(size_t size);

/* Is the countdown over after so many more bytes? */
static inline bool countdown_passes(size_t size)
{
    return UNLIKELY((shim_thread.countdown -= (int64_t)size) < 0);
}

static inline void *account_allocated(void *address, size_t size, enum allocation_domain domain)
{
    if (address && countdown_passes(size))
        return account_sample(address, size, domain);
    return address;
}

static inline bool copy_passes(size_t size)
{
    return UNLIKELY((shim_thread.copy_countdown -= (int64_t)size) < 0);
}

static inline void account_copied(size_t size)
{
    if (copy_passes(size))
        account_copy(size);
}

/*
 * Around a resizing: begin takes the block out of the table, because its address may be another's
 * before the allocator has returned; end puts it back, at its new address or, where there is none,
 * at the old one. `size` is what is asked for; `given`, of an unsampled block, what the allocator
 * gave for it before and after, 0 where nobody knows.
 */
struct resizing {
    bool sampled;
    struct block block;
    uint64_t asked; /* of an unsampled one: asked_sizes.h */
};

struct given_sizes {
    size_t before, after;
    size_t likely; /* what was asked for before, on average, of who was given that */
};

void resizing_begin(struct resizing *resizing, const void *old);
void resizing_end(struct resizing *resizing, const void *old, const void *new, size_t size,
                  const struct given_sizes *given, enum allocation_domain domain);

/* Instead of the end: the block is gone, as realloc() to 0 bytes may have it. */
void account_ended(const struct block *block);

/* Regions by mmap, which end in pieces: mappings.c keeps them. */
void account_mapped(const void *address, size_t size);
void account_unmapped(const void *address, size_t size);
void account_remapped(const void *old, size_t old_size, const void *new, size_t size);

/* For mappings.c: whether growth is a sample, which is then told; the block is left with so much;
 * it ends. */
bool growth_sample(struct block *block, size_t growth, enum allocation_domain domain);
void block_shrink(struct block *block, uint64_t size);
void block_end(const struct block *block);

/* The calling thread's next allocation is looked at, sample or not. */
void account_look_soon(void);

/* A stay inside of the shim: nothing that happens meanwhile is counted, neither blocks nor what is
 * copied into the ring, and errno stays. */
struct stay {
    int error;
    bool inside;
    int64_t copy_countdown;
};

struct stay stay_begin(void);
void stay_end(struct stay stay);
