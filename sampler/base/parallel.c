#define _GNU_SOURCE 1 /* sched_getaffinity */

#include "sampler/base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { THREADS_MAX = 16 };

struct work {
    size_t count;
    int (*piece)(void *context, size_t index);
    void *context;
    atomic_size_t next;
    atomic_int error;
};

static void *work_do(void *argument)
{
    struct work *work = argument;
    size_t index;
    while (!atomic_load(&work->error) && (index = atomic_fetch_add(&work->next, 1)) < work->count) {
        int error = work->piece(work->context, index);
        if (error)
            atomic_store(&work->error, error);
    }
    return NULL;
}

/* Beside the caller's. */
static size_t threads_wanted(size_t pieces)
{
    cpu_set_t cores;
    size_t count = sched_getaffinity(0, sizeof cores, &cores) ? 1 : (size_t)CPU_COUNT(&cores);
    if (count > THREADS_MAX)
        count = THREADS_MAX;
    if (count > pieces)
        count = pieces;
    return count > 1 ? count - 1 : 0;
}

int parallel_run(size_t count, int (*piece)(void *context, size_t index), void *context)
{
    struct work work = { .count = count, .piece = piece, .context = context };
    pthread_t threads[THREADS_MAX];
    size_t wanted = threads_wanted(count), begun = 0;
    while (begun < wanted && pthread_create(&threads[begun], NULL, work_do, &work) == 0)
        begun++;
    work_do(&work);
    while (begun)
        pthread_join(threads[--begun], NULL);
    return atomic_load(&work.error);
}
