/*
 * What the tests of family_watch share: targets that note in shared memory whom they forked, and a
 * list of what was told of each process, which must be a story: it joins, it may exec, it ends, and
 * is never heard of again.
 */
#pragma once

#include <semaphore.h>

#include "child.h"
#include "sampler/base/clock_read.h"
#include "sampler/target/family_watch.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>

DEFINE_CLEANUP(struct family_watch *, family_watch_close)
#define AUTO_WATCH CLEANUP(family_watch_closep)

enum { MANY = 200, SEEN = 32768 };

/* What was told of one process. */
struct seen {
    pid_t pid, ppid;
    unsigned joined, execed, ended;
    bool forked;
    int exit_status;
    uint64_t cpu_ns;
};

static struct {
    struct seen list[SEEN];
    size_t count;
    unsigned ended;
} told;

/* Shared with the targets. */
static struct {
    pid_t pids[MANY];
    atomic_bool go;
    sem_t gate; /* opened by gate_open for so many children at once */
    uint64_t cpu_ns;
} * shared;

static inline int set_up(void **state)
{
    (void)state;
    shared = shared_zeroed(shared, sizeof *shared);
    sem_init(&shared->gate, 1, 0);
    memset(&told, 0, sizeof told);
    return 0;
}

static const enum family_method both[] = { FAMILY_EVENTS, FAMILY_POLLING };

static inline enum family_method method_of(void **state)
{
    return *(const enum family_method *)*state;
}

static inline struct family_watch *open_watch(void **state, bool follow, pid_t root)
{
    struct family_watch *watch;
    struct failure why = { 0 };
    if (family_watch_open(follow, method_of(state), &watch, &why))
        fail_msg("family_watch_open: %s", why.text);
    if (family_watch_method(watch) != method_of(state)) {
        family_watch_close(watch);
        SKIP("the kernel tells us no process events here");
    }
    if (root)
        assert_int_equal(family_watch_add(watch, root), 0);
    return watch;
}

static inline struct seen *seen_of(pid_t pid)
{
    for (size_t i = 0; i < told.count; i++)
        if (told.list[i].pid == pid)
            return &told.list[i];
    assert_in_range(told.count, 0, SEEN - 1);
    told.list[told.count] = (struct seen){ .pid = pid, .exit_status = -2 };
    return &told.list[told.count++];
}

/* One process's story: it joins, execs any number of times, ends, and is never heard of again. */
static inline void take(const struct family_event *event)
{
    struct seen *seen = seen_of(event->pid);
    assert_int_equal(seen->ended, 0);
    assert_int_equal(seen->joined, event->change != FAMILY_JOINED);
    switch (event->change) {
    case FAMILY_JOINED:
        seen->joined++;
        seen->ppid = event->ppid;
        seen->forked = event->forked;
        break;
    case FAMILY_EXECED:
        seen->execed++;
        break;
    case FAMILY_ENDED:
        seen->ended++;
        told.ended++;
        seen->exit_status = event->exit_status;
        break;
    }
    assert_true(event->cpu_ns >= seen->cpu_ns);
    seen->cpu_ns = event->cpu_ns;
}

/* As the profiler's loop does it. */
static inline void attend(struct family_watch *watch)
{
    struct family_event event;
    uint64_t now = clock_ns(CLOCK_MONOTONIC), until = family_watch_deadline_ns(watch),
             longest = now + 100000000;
    until = until < longest ? until : longest;
    uint64_t gap = until > now ? until - now : 0;
    const struct timespec wait = { (time_t)(gap / 1000000000u), (long)(gap % 1000000000u) };
    struct pollfd fd = { family_watch_fd(watch), POLLIN, 0 };
    ppoll(&fd, 1, &wait, NULL);
    int result;
    while ((result = family_watch_next(watch, clock_ns(CLOCK_MONOTONIC), &event)) > 0)
        take(&event);
    assert_int_equal(result, 0);
}

#define attend_until(watch, condition) await((attend(watch), (condition)))

/* The process may be told of before the call that made it has returned its number. */
static inline pid_t known(size_t index)
{
    const volatile pid_t *pid = &shared->pids[index];
    await(*pid);
    return *pid;
}

/* In a target: a child of its own, which the test knows. */
static inline pid_t fork_known(size_t index)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        end_with_parent(parent);
    else
        shared->pids[index] = pid;
    return pid;
}

#define WITH(name, test, method)                                                                   \
    {                                                                                              \
        name, test, set_up, NULL, (void *)&both[method]                                            \
    }
#define BOTH(test) WITH(#test " by events", test, 0), WITH(#test " by polling", test, 1)
#define EVENTS(test) WITH(#test " by events", test, 0)
