#include "sampler/base/page_cache.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/error.h"

#include <stdbool.h>
#include <string.h>

enum {
    PAGE_SIZE = 4096,
    RUN_PAGES = 32,       /* read ahead at most */
    SLOT_COUNT = 1 << 13, /* 32 MiB of pages; beyond that the cache forgets and starts again */
    PAGE_LIMIT = SLOT_COUNT / 2,
};

struct page {
    remote_addr address;
    uint8_t *bytes; /* NULL: could not be read */
};

struct page_cache {
    struct remote remote; /* first: the seam leads back here */
    struct remote *under;
    struct page slots[SLOT_COUNT]; /* open addressing; address 0 is free */
    size_t count;
    remote_addr last_miss;
    size_t run; /* pages read at the last miss */
    struct block *blocks;
};

/* Pages are allocated by the run and all freed together. */
struct block {
    struct block *next;
    uint8_t bytes[];
};

static struct page *page_slot(struct page_cache *cache, remote_addr page)
{
    size_t index = (page / PAGE_SIZE * 0x9E3779B97F4A7C15u) >> (64 - 13);
    while (cache->slots[index].address && cache->slots[index].address != page)
        index = (index + 1) % SLOT_COUNT;
    return &cache->slots[index];
}

static uint8_t *block_new(struct page_cache *cache, size_t size)
{
    struct block *block = malloc(sizeof *block + size);
    if (!block)
        return NULL;
    block->next = cache->blocks;
    cache->blocks = block;
    return block->bytes;
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
    if (cache->count + RUN_PAGES > PAGE_LIMIT)
        page_cache_forget(cache);

    size_t pages = run_choose(cache, page);
    remote_addr start = page;
    if (pages > 1 && page < cache->last_miss && page > pages * PAGE_SIZE)
        start = page - (pages - 1) * PAGE_SIZE;
    cache->last_miss = page;

    uint8_t *bytes = block_new(cache, pages * PAGE_SIZE);
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
    struct page *wanted = page_slot(cache, page);
    if (!wanted->address) {
        *wanted = (struct page){ page, NULL };
        cache->count++;
    }
    for (size_t at = 0; at + PAGE_SIZE <= (size_t)got; at += PAGE_SIZE) {
        struct page *slot = page_slot(cache, start + at);
        if (slot->address && slot->bytes)
            continue;
        cache->count += slot->address == 0;
        *slot = (struct page){ start + at, bytes + at };
    }
    return 0;
}

static int page_find(struct page_cache *cache, remote_addr page, const uint8_t **ret)
{
    struct page *slot = page_slot(cache, page);
    if (!slot->address) {
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

static int cache_read_pieces(struct remote *self, const struct remote_piece *pieces, size_t count,
                             size_t *ret_tail)
{
    struct page_cache *cache = (struct page_cache *)self;
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
    *ret = cache;
    return 0;
}

void page_cache_forget(struct page_cache *cache)
{
    while (cache->blocks) {
        struct block *block = cache->blocks;
        cache->blocks = block->next;
        free(block);
    }
    if (cache->count)
        memset(cache->slots, 0, sizeof cache->slots);
    cache->count = 0;
    cache->last_miss = 0;
    cache->run = 0;
}

void page_cache_free(struct page_cache *cache)
{
    if (!cache)
        return;
    page_cache_forget(cache);
    free(cache);
}

struct remote *page_cache_remote(struct page_cache *cache)
{
    return &cache->remote;
}
