/*
 * What only C does, for injected.py: frees by a function that stands in a table of data, and
 * allocates in threads that know nothing of the GIL.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, BLOCKS = 64 };

struct operations {
    void *(*make)(size_t size);
    void (*drop)(void *block);
};

/* Words of data that the loader has made addresses of, one of them guarded. */
static struct operations open_table = { malloc, free };
static const struct operations guarded_table = { malloc, free };
static struct operations *volatile open_one = &open_table;
static const struct operations *volatile guarded_one = &guarded_table;

void parts_pass(size_t size, int times)
{
    for (int i = 0; i < times; i++) {
        open_one->drop(guarded_one->make(size));
        guarded_one->drop(malloc(size));
        free(open_one->make(size));
    }
}

/* ---- a storm ---- */

static pthread_t threads[THREADS];
static atomic_bool leave;
static atomic_int wrong;

static int is_whole(const unsigned char *block, size_t size, int mark)
{
    return block[0] == mark && block[size / 2] == mark && block[size - 1] == mark;
}

static void *storm(void *unused)
{
    unsigned char *blocks[BLOCKS] = { NULL };
    size_t sizes[BLOCKS] = { 0 };
    for (unsigned step = 1; !leave; step++) {
        unsigned at = step * 2654435761u >> 26;
        size_t size = step % 97 == 0 ? 300000 : (step * 40503u >> 7) % 3000 + 1;
        if (blocks[at] && !is_whole(blocks[at], sizes[at], (int)at))
            wrong++;
        if (step % 3 == 0)
            free(blocks[at]);
        blocks[at] = step % 3 ? realloc(blocks[at], size) : malloc(size);
        memset(blocks[at], (int)at, sizes[at] = size);
    }
    for (unsigned at = 0; at < BLOCKS; at++)
        free(blocks[at]);
    return unused;
}

void parts_storm(void)
{
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, storm, NULL))
            abort();
}

/* How many blocks were not as they had been left. */
int parts_calm(void)
{
    leave = 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return wrong;
}
