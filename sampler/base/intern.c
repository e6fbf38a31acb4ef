#include "sampler/base/intern.h"

#include "sampler/base/error.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct text {
    struct text *next;
    uint64_t hash;
    char bytes[];
};

struct intern {
    struct text **buckets;
    size_t bucket_count; /* a power of two */
    size_t count, size;
};

enum { FIRST_BUCKETS = 256 };

int intern_new(struct intern **ret)
{
    struct intern *pool = calloc(1, sizeof *pool);
    struct text **buckets = calloc(FIRST_BUCKETS, sizeof *buckets);
    if (!pool || !buckets) {
        free(pool);
        free(buckets);
        return -ENOMEM;
    }
    pool->buckets = buckets;
    pool->bucket_count = FIRST_BUCKETS;
    *ret = pool;
    return 0;
}

void intern_empty(struct intern *pool)
{
    for (size_t i = 0; i < pool->bucket_count; i++) {
        while (pool->buckets[i]) {
            struct text *text = pool->buckets[i];
            pool->buckets[i] = text->next;
            free(text);
        }
    }
    pool->count = pool->size = 0;
}

void intern_free(struct intern *pool)
{
    if (!pool)
        return;
    intern_empty(pool);
    free(pool->buckets);
    free(pool);
}

static uint64_t text_hash(const char *text)
{
    uint64_t hash = 0xCBF29CE484222325u; /* FNV-1a */
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001B3u;
    return hash;
}

/* Doubling may fail; the pool then only gets slower. */
static void buckets_grow(struct intern *pool)
{
    size_t doubled = 2 * pool->bucket_count;
    struct text **buckets = calloc(doubled, sizeof *buckets);
    if (!buckets)
        return;
    for (size_t i = 0; i < pool->bucket_count; i++) {
        while (pool->buckets[i]) {
            struct text *text = pool->buckets[i];
            pool->buckets[i] = text->next;
            text->next = buckets[text->hash & (doubled - 1)];
            buckets[text->hash & (doubled - 1)] = text;
        }
    }
    free(pool->buckets);
    pool->buckets = buckets;
    pool->bucket_count = doubled;
}

const char *intern_text(struct intern *pool, const char *bytes)
{
    uint64_t hash = text_hash(bytes);
    struct text *found = pool->buckets[hash & (pool->bucket_count - 1)];
    for (; found; found = found->next)
        if (found->hash == hash && strcmp(found->bytes, bytes) == 0)
            return found->bytes;

    if (pool->count > pool->bucket_count)
        buckets_grow(pool);
    size_t size = strlen(bytes) + 1;
    struct text *text = malloc(sizeof *text + size);
    if (!text)
        return NULL;
    text->hash = hash;
    memcpy(text->bytes, bytes, size);
    struct text **bucket = &pool->buckets[hash & (pool->bucket_count - 1)];
    text->next = *bucket;
    *bucket = text;
    pool->count++;
    pool->size += sizeof *text + size;
    return text->bytes;
}

size_t intern_size(const struct intern *pool)
{
    return pool->size;
}
