#include "sampler/base/page_cache.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/error.h"

#include <stdbool.h>
#include <string.h>

enum {
    PAGE_SIZE = 4096,
    RUN_PAGES = 32,       /* read ahead at most, or fetched in one call */
    BLOCK_PAGES = 64,     /* allocated at once */
    FIRST_BITS = 7,       /* slots, as a power of two: most walks touch few pages */
    PAGE_LIMIT = 1 << 12, /* 16 MiB; beyond that the cache forgets and starts again */
};

struct page {
    remote_addr address;
    uint8_t *bytes; /* NULL: could not be read */
    uint64_t era;   /* the slot is free unless it is the cache's */
};

struct page_cache {
    struct remote remote; /* first: the seam leads back here */
    struct remote *under;
    struct page *slots; /* open addressing, at most half full */
    unsigned bits;
    uint64_t era;
    size_t count;
    remote_addr last_miss;
    size_t run; /* pages read at the last miss */
    struct block *blocks;
};

/* Memory of pages, handed out by the run. */
struct block {
    struct block *next;
    size_t used; /* bytes */
    uint8_t bytes[BLOCK_PAGES * PAGE_SIZE];
};

static bool slot_used(const struct page_cache *cache, const struct page *slot)
{
    return slot->era == cache->era;
}

static struct page *page_slot(struct page_cache *cache, remote_addr page)
{
    size_t last = ((size_t)1 << cache->bits) - 1;
    size_t index = (page / PAGE_SIZE * 0x9E3779B97F4A7C15u) >> (64 - cache->bits);
    while (slot_used(cache, &cache->slots[index]) && cache->slots[index].address != page)
        index = (index + 1) & last;
    return &cache->slots[index];
}

static void page_put(struct page_cache *cache, remote_addr page, uint8_t *bytes)
{
    struct page *slot = page_slot(cache, page);
    cache->count += !slot_used(cache, slot);
    *slot = (struct page){ page, bytes, cache->era };
}

/* Room for as many more as one call brings. */
static int slots_reserve(struct page_cache *cache)
{
    if (cache->count + RUN_PAGES > PAGE_LIMIT)
        page_cache_forget(cache);
    if (2 * (cache->count + RUN_PAGES) <= (size_t)1 << cache->bits)
        return 0;
    struct page_cache larger = *cache;
    larger.bits++;
    larger.count = 0;
    larger.slots = calloc((size_t)1 << larger.bits, sizeof *larger.slots);
    if (!larger.slots)
        return -ENOMEM;
    for (size_t i = 0; i < (size_t)1 << cache->bits; i++)
        if (slot_used(cache, &cache->slots[i]))
            page_put(&larger, cache->slots[i].address, cache->slots[i].bytes);
    free(cache->slots);
    *cache = larger;
    return 0;
}

static uint8_t *bytes_new(struct page_cache *cache, size_t size)
{
    struct block *block = cache->blocks;
    if (!block || block->used + size > sizeof block->bytes) {
        block = malloc(sizeof *block);
        if (!block)
            return NULL;
        block->next = cache->blocks;
        block->used = 0;
        cache->blocks = block;
    }
    uint8_t *bytes = block->bytes + block->used;
    block->used += size;
    return bytes;
}

/* Misses that go on in address order promise more of them: read ahead, twice as far each time. */
static size_t run_choose(struct page_cache *cache, remote_addr page)
{
    remote_addr distance =
        page > cache->last_miss ? page - cache->last_miss : cache->last_miss - page;
    bool near = cache->run && distance <= 2 * cache->run * PAGE_SIZE;
    cache->run = near ? 2 * cache->run : 1;
    if (cache->run > RUN_PAGES)
        cache->run = RUN_PAGES;
    return cache->run;
}

/* Reads the page, and the pages around it when misses run in order. */
static int page_load(struct page_cache *cache, remote_addr page)
{
    int error = slots_reserve(cache);
    if (error)
        return error;
    size_t pages = run_choose(cache, page);
    remote_addr start = page;
    if (pages > 1 && page < cache->last_miss && page > pages * PAGE_SIZE)
        start = page - (pages - 1) * PAGE_SIZE;
    cache->last_miss = page;

    uint8_t *bytes = bytes_new(cache, pages * PAGE_SIZE);
    if (!bytes)
        return -ENOMEM;
    long got = remote_read_some(cache->under, start, bytes, pages * PAGE_SIZE);
    if (got < 0)
        return (int)got;
    if (start != page && start + (size_t)got <= page) {
        start = page;
        got = remote_read_some(cache->under, page, bytes, PAGE_SIZE);
        if (got < 0)
            return (int)got;
    }
    page_put(cache, page, NULL);
    for (size_t at = 0; at + PAGE_SIZE <= (size_t)got; at += PAGE_SIZE) {
        struct page *slot = page_slot(cache, start + at);
        if (!slot_used(cache, slot) || !slot->bytes)
            page_put(cache, start + at, bytes + at);
    }
    return 0;
}

static int page_find(struct page_cache *cache, remote_addr page, const uint8_t **ret)
{
    struct page *slot = page_slot(cache, page);
    if (!slot_used(cache, slot)) {
        int error = page_load(cache, page);
        if (error)
            return error;
        slot = page_slot(cache, page);
    }
    *ret = slot->bytes;
    return 0;
}

/* Bytes copied, which may be fewer than asked for, or negative errno. */
static long piece_copy(struct page_cache *cache, const struct remote_piece *piece)
{
    size_t done = 0;
    while (done < piece->size) {
        remote_addr address = piece->address + done;
        remote_addr page = address & ~(remote_addr)(PAGE_SIZE - 1);
        const uint8_t *bytes = NULL;
        if (page == 0 || address < piece->address)
            break;
        int error = page_find(cache, page, &bytes);
        if (error)
            return error;
        if (!bytes)
            break;
        size_t part = PAGE_SIZE - (size_t)(address - page);
        if (part > piece->size - done)
            part = piece->size - done;
        memcpy((uint8_t *)piece->into + done, bytes + (address - page), part);
        done += part;
    }
    return (long)done;
}

/* What the pieces, small ones, begin in and has not been read: up to RUN_PAGES pages. */
static size_t misses_collect(struct page_cache *cache, const struct remote_piece *pieces,
                             size_t count, struct remote_piece *ret)
{
    size_t found = 0;
    for (size_t i = 0; i < count && found < RUN_PAGES; i++) {
        remote_addr page = pieces[i].address & ~(remote_addr)(PAGE_SIZE - 1);
        if (page == 0 || slot_used(cache, page_slot(cache, page)))
            continue;
        page_put(cache, page, NULL);
        ret[found++] = (struct remote_piece){ .address = page, .size = PAGE_SIZE };
    }
    return found;
}

/* Pieces that lie scattered are worth one call for all of their pages; a page that cannot be read
 * stays marked so. */
static int pieces_fetch(struct page_cache *cache, const struct remote_piece *pieces, size_t count)
{
    struct remote_piece misses[RUN_PAGES];
    int error = slots_reserve(cache);
    if (error)
        return error;
    size_t missing = misses_collect(cache, pieces, count, misses);
    uint8_t *bytes = missing ? bytes_new(cache, missing * PAGE_SIZE) : NULL;
    if (missing && !bytes)
        return -ENOMEM;
    for (size_t i = 0; i < missing; i++)
        misses[i].into = bytes + i * PAGE_SIZE;
    for (size_t next = 0; next < missing; next++) {
        int whole = cache->under->read_pieces(cache->under, misses + next, missing - next, NULL);
        if (whole < 0)
            return whole;
        for (size_t end = next + (size_t)whole; next < end; next++)
            page_slot(cache, misses[next].address)->bytes = misses[next].into;
    }
    return 0;
}

static int cache_read_pieces(struct remote *self, const struct remote_piece *pieces, size_t count,
                             size_t *ret_tail)
{
    struct page_cache *cache = (struct page_cache *)self;
    for (size_t i = 0; i < count && count > 1; i += RUN_PAGES) {
        int error = pieces_fetch(cache, pieces + i, count - i < RUN_PAGES ? count - i : RUN_PAGES);
        if (error) {
            page_cache_forget(cache);
            return error;
        }
    }
    for (size_t i = 0; i < count; i++) {
        long copied = piece_copy(cache, &pieces[i]);
        if (copied < 0)
            return (int)copied;
        if ((size_t)copied != pieces[i].size) {
            if (ret_tail)
                *ret_tail = (size_t)copied;
            return (int)i;
        }
    }
    return (int)count;
}

int page_cache_new(struct remote *under, struct page_cache **ret)
{
    struct page_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return -ENOMEM;
    cache->remote.read_pieces = cache_read_pieces;
    cache->under = under;
    cache->era = 1;
    cache->bits = FIRST_BITS;
    cache->slots = calloc((size_t)1 << FIRST_BITS, sizeof *cache->slots);
    if (!cache->slots) {
        free(cache);
        return -ENOMEM;
    }
    *ret = cache;
    return 0;
}

void page_cache_forget(struct page_cache *cache)
{
    while (cache->blocks && cache->blocks->next) {
        struct block *block = cache->blocks;
        cache->blocks = block->next;
        free(block);
    }
    if (cache->blocks)
        cache->blocks->used = 0;
    cache->era++;
    cache->count = 0;
    cache->last_miss = 0;
    cache->run = 0;
}

void page_cache_free(struct page_cache *cache)
{
    if (!cache)
        return;
    page_cache_forget(cache);
    free(cache->blocks);
    free(cache->slots);
    free(cache);
}

struct remote *page_cache_source(struct page_cache *cache)
{
    return cache->under;
}

struct remote *page_cache_remote(struct page_cache *cache)
{
    return &cache->remote;
}
