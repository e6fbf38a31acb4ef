/*
 * A program with an allocator linked in, and not every name of the family: what it lacks comes from
 * libraries, and leads back to it. Its blocks bear their size, so that no other can do with them.
 */
#define _GNU_SOURCE 1 /* reallocarray */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAP = 64 << 20, TIMES = 1000, SIZE = 3000 };

static _Alignas(16) char heap[HEAP];
static size_t used;

void *malloc(size_t size)
{
    size_t *block = (size_t *)(heap + used);
    used += (size + 31) & ~(size_t)15;
    *block = size;
    return used < HEAP ? (char *)block + 16 : NULL;
}

void free(void *block)
{
    (void)block;
}

void *calloc(size_t count, size_t size)
{
    void *block = malloc(count * size);
    return block ? memset(block, 0, count * size) : NULL;
}

void *realloc(void *old, size_t size)
{
    void *block = malloc(size);
    size_t before = old ? ((size_t *)old)[-2] : 0;
    return block && old ? memcpy(block, old, before < size ? before : size) : block;
}

int main(void)
{
    for (int i = 0; i < TIMES; i++) {
        char *block = malloc(100);
        strcpy(block, "kept");
        block = reallocarray(block, SIZE, 2);
        if (strcmp(block, "kept") != 0)
            return 1;
        free(block);
    }
    puts("kept");
    return 0;
}
