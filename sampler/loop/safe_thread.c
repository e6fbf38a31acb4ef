#include "sampler/loop/safe_thread.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/clock_read.h"
#include "sampler/loop/quiet.h"
#include "sampler/loop/thread_place.h"
#include "sampler/target/threads.h"

#include <poll.h>
#include <string.h>

enum {
    GAP_MS = 1, /* between two rounds; doubled each time, … */
    GAP_LONGEST_MS = 50,
    GAP_OF_ONE_MS = 5, /* … unless one thread alone is asked */
};

struct search {
    struct process *process;
    const struct safe_search *wanted;
    struct thread_places *places;
    struct stillness *others; /* NULL: they may run */
    const char *obstacle;     /* of the last thread that was looked at */
    pid_t in_the_way;         /* 0: nobody in particular */
    bool has_looked;          /* at each one alone */
};

/* ---- one after the other ---- */

/* 1: found. */
static int thread_try(struct search *search, pid_t tid, struct pause *ret)
{
    struct pause pause = { 0 };
    int error = thread_pause(tid, &pause);
    if (error == -EAGAIN)
        search->obstacle = "threads are in sleeps that nothing interrupts";
    if (error)
        return error == -EPERM ? error : 0;
    search->obstacle = thread_places_refuse_call(search->places, &pause);
    if (!search->obstacle) {
        *ret = pause;
        return 1;
    }
    thread_resume(&pause);
    return 0;
}

/* Those that wait first: they stand where they stand. */
static int round_try(struct search *search, struct pause *ret)
{
    AUTO_FREE struct os_thread *threads = NULL;
    int count = threads_list(search->process, &threads);
    int found = count < 0 ? count : 0;
    for (int running = 0; running < 2 && !found; running++)
        for (int i = 0; i < count && !found; i++) {
            struct wait_state wait;
            if (thread_read_wait(search->process, threads[i].tid, &wait) == 0 &&
                wait.off_cpu != running)
                found = thread_try(search, threads[i].tid, ret);
        }
    return found;
}

/* ---- all at once ---- */

/* Does that one, which is paused alone, come in the way of a call? */
static bool thread_is_in_the_way(struct search *search, pid_t tid)
{
    struct pause pause = { 0 };
    if (thread_pause(tid, &pause))
        return false;
    const char *obstacle = thread_places_refuse_rest(search->places, &pause);
    thread_resume(&pause);
    if (obstacle) {
        search->obstacle = obstacle;
        search->in_the_way = tid;
    }
    return obstacle;
}

/* The others are not made to stand for one that would keep them waiting as before; nor all for as
 * long as it takes to learn of the objects that they stand in. */
static bool somebody_is_in_the_way(struct search *search)
{
    AUTO_FREE struct os_thread *threads = NULL;
    if (search->in_the_way)
        return thread_is_in_the_way(search, search->in_the_way);
    if (search->has_looked)
        return false;
    int count = threads_list(search->process, &threads);
    search->has_looked = true;
    for (int i = 0; i < count; i++)
        if (thread_is_in_the_way(search, threads[i].tid))
            return true;
    return false;
}

static bool caller_take(struct search *search, struct stillness *still, struct pause *ret)
{
    for (int running = 0; running < 2; running++)
        for (size_t i = 0; i < still->count; i++) {
            struct pause *pause = &still->pauses[i];
            if (!pause->tid || thread_place_is_call(pause) == running)
                continue;
            search->obstacle = thread_places_refuse_call(search->places, pause);
            if (!search->obstacle) {
                *ret = stillness_take(pause);
                return true;
            }
        }
    return false;
}

static int round_try_quiet(struct search *search, struct pause *ret)
{
    if (somebody_is_in_the_way(search))
        return 0;
    int error = quiet_begin(search->process, search->places, search->others, &search->obstacle,
                            &search->in_the_way);
    if (error)
        return error == -EAGAIN ? 0 : error;
    search->in_the_way = 0;
    if (caller_take(search, search->others, ret))
        return 1;
    stillness_end(search->others);
    return 0;
}

/* ---- until there is one ---- */

static uint64_t clock_ms(void)
{
    return clock_ns(CLOCK_MONOTONIC) / 1000000;
}

static int round_any(struct search *search, struct pause *ret)
{
    int error = thread_places_learn(search->places);
    if (error)
        return error;
    return search->others ? round_try_quiet(search, ret) : round_try(search, ret);
}

static int rounds_try(struct search *search, struct pause *ret)
{
    uint64_t until_ms = clock_ms() + search->wanted->patience_ms;
    int gap_ms = GAP_MS, found;
    while (!(found = round_any(search, ret))) {
        struct pollfd cancel = { .fd = search->wanted->cancel_fd, .events = POLLIN };
        if (process_check(search->process))
            return -ESRCH;
        if (clock_ms() > until_ms)
            return -EBUSY;
        if (poll(&cancel, 1, gap_ms) > 0)
            return -ECANCELED;
        int longest_ms = search->in_the_way ? GAP_OF_ONE_MS : GAP_LONGEST_MS;
        gap_ms = 2 * gap_ms < longest_ms ? 2 * gap_ms : longest_ms;
    }
    return found;
}

static int found_explain(const struct search *search, int found, struct failure *why)
{
    const struct process *process = search->process;
    switch (found) {
    case -EBUSY:
        return failure_set(why, found,
                           "process %d had no thread for %.3g s in which a call is safe: %s",
                           process->pid, search->wanted->patience_ms / 1000.0, search->obstacle);
    case -EPERM:
        return process_explain_denied(process, "trace", why)
                   ? why->code
                   : failure_set(why, found, "the threads of process %d cannot be traced",
                                 process->pid);
    case -ESRCH:
        return failure_set(why, found, "process %d ended or became another program", process->pid);
    case -ECANCELED:
        return failure_set(why, found, "a signal broke the injection into process %d off",
                           process->pid);
    case -E2BIG:
        return failure_set(why, found,
                           "process %d has so many threads that they would stand for too long",
                           process->pid);
    default:
        return failure_set(why, found, "the threads of process %d cannot be looked at: %s",
                           process->pid, strerror(-found));
    }
}

static int search_go(struct search *search, struct pause *ret, struct failure *why)
{
    int found = thread_places_open(search->process, &search->places);
    if (!found)
        found = rounds_try(search, ret);
    return found > 0 ? 0 : found_explain(search, found, why);
}

int safe_thread_find(struct process *process, const struct safe_search *wanted, struct pause *ret,
                     struct failure *why)
{
    struct search search = { .process = process, .wanted = wanted };
    int error = search_go(&search, ret, why);
    thread_places_close(search.places);
    return error;
}

int safe_thread_find_quiet(struct process *process, const struct safe_search *wanted,
                           struct pause *ret, struct stillness *ret_others,
                           struct thread_places **ret_places, struct failure *why)
{
    struct search search = { .process = process, .wanted = wanted, .others = ret_others };
    *ret_others = (struct stillness){ .memory_fd = -1 };
    int error = search_go(&search, ret, why);
    if (error)
        thread_places_close(search.places);
    else
        *ret_places = search.places;
    return error;
}
