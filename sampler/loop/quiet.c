#include "sampler/loop/quiet.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/clock_read.h"

#include <time.h>

enum {
    THREADS_MOST = 4096,
    MOMENT_NS = 20000,   /* that some run on in between */
    STAND_NS = 20000000, /* all in all, that the others stand meanwhile */
};

struct settling {
    struct process *process;
    struct thread_places *places;
    struct stillness *still;
    pid_t *moving; /* beside each pause: the thread, or 0 where it stands well */
    size_t count;  /* of these; later pauses are of threads that were begun since */
    const char *obstacle;
    pid_t thread;
};

/* One by one, and those that were found well before stay so: how many do not, or negative. */
static int all_look(struct settling *settling)
{
    size_t count = settling->still->count;
    int moving = 0;
    pid_t *more = realloc(settling->moving, count * sizeof *more);
    if (!more)
        return -ENOMEM;
    settling->moving = more;
    for (size_t i = 0; i < count; i++) {
        const struct pause *pause = &settling->still->pauses[i];
        bool asked = pause->tid && (i >= settling->count || settling->moving[i]);
        const char *obstacle = asked ? thread_places_refuse_rest(settling->places, pause) : NULL;
        settling->moving[i] = obstacle ? pause->tid : 0;
        if (!obstacle)
            continue;
        settling->obstacle = obstacle;
        settling->thread = pause->tid;
        moving++;
    }
    settling->count = count;
    return moving;
}

/* Together, as one may have what another one waits for. Who has ended is in nobody's way. */
static int some_let_on(struct settling *settling)
{
    const struct timespec moment = { .tv_nsec = MOMENT_NS };
    struct stillness *still = settling->still;
    int error = 0;
    for (size_t i = 0; i < settling->count; i++)
        if (settling->moving[i])
            stillness_resume(still, &still->pauses[i]);
    nanosleep(&moment, NULL);
    for (size_t i = 0; i < settling->count && !error; i++) {
        if (settling->moving[i])
            error = thread_pause(settling->moving[i], &still->pauses[i]);
        error = error == -ESRCH ? 0 : error;
    }
    return error ? error : stillness_extend(settling->process, still, THREADS_MOST);
}

static int all_settle(struct settling *settling)
{
    uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + STAND_NS;
    int moving;
    while ((moving = all_look(settling)) > 0) {
        int error = clock_ns(CLOCK_MONOTONIC) > until_ns ? -EAGAIN : some_let_on(settling);
        if (error)
            return error;
    }
    return moving;
}

int quiet_begin(struct process *process, struct thread_places *places, struct stillness *ret,
                const char **ret_obstacle, pid_t *ret_thread)
{
    struct settling settling = {
        .process = process,
        .places = places,
        .still = ret,
        .obstacle = "threads are in sleeps that nothing interrupts, or begin others",
    };
    int error = stillness_begin(process, THREADS_MOST, ret);
    if (!error) {
        error = all_settle(&settling);
        if (error)
            stillness_end(ret);
    }
    free(settling.moving);
    *ret_obstacle = settling.obstacle;
    *ret_thread = settling.thread;
    return error;
}

void quiet_loosen(struct thread_places *places, struct stillness *still)
{
    for (size_t i = 0; i < still->count; i++)
        if (still->pauses[i].tid && thread_places_allocates(places, &still->pauses[i]))
            stillness_resume(still, &still->pauses[i]);
}
