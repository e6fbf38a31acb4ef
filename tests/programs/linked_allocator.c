/* Allocates so many bytes by each way there is, and says how many: whatever allocator it is linked
 * with. */
#define _GNU_SOURCE 1 /* reallocarray */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES = 4000, SIZE = 3000, ALIGNMENT = 64 };

static char *blocks[TIMES];

static void *block_make(int way)
{
    void *block = NULL;
    switch (way) {
    case 0:
        return malloc(SIZE);
    case 1:
        return calloc(SIZE / 10, 10);
    case 2:
        return realloc(malloc(SIZE / 2), SIZE);
    case 3:
        return reallocarray(malloc(SIZE / 2), SIZE / 10, 10);
    case 4:
        return posix_memalign(&block, ALIGNMENT, SIZE) ? NULL : block;
    default:
        return memalign(ALIGNMENT, SIZE);
    }
}

int main(void)
{
    for (int i = 0; i < TIMES; i++)
        memset(blocks[i] = block_make(i % 6), i, SIZE);
    for (int i = 0; i < TIMES; i++)
        if (blocks[i][SIZE - 1] != (char)i)
            return 1;
    printf("%d\n", TIMES * SIZE);
    for (int i = 0; i < TIMES; i += 2)
        free(blocks[i]);
    return 0;
}
