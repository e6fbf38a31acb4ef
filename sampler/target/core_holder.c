#define _GNU_SOURCE 1 /* sched_setaffinity, sched_getcpu */

#include "sampler/target/core_holder.h"

#include "sampler/base/clock_read.h"
#include "sampler/target/turns.h"

#include <errno.h>
#include <linux/futex.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    AHEAD_NS = 500000, /* from asking to taking: the helper has to get there and set its timer, and
                          for a tenth of a millisecond after that the core runs other code more
                          slowly, some much more than other */
    LATE_NS = 40000,   /* who comes later than that comes in vain */
};

struct core_holder {
    pthread_t thread;
    bool begun;
    atomic_int tid;          /* of the helper, once it is there */
    atomic_uint wanted;      /* counts what was asked; the helper sleeps on it */
    atomic_uint taken, done; /* the last that was taken, that may be let go */
    atomic_bool ends;
    _Atomic uint64_t at_ns;
    int core;       /* where the helper may run */
    double late_ns; /* of the asker's sleeps, of late */
};

static void sleep_until(uint64_t at_ns)
{
    struct timespec at = { (time_t)(at_ns / 1000000000u), (long)(at_ns % 1000000000u) };
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void *holder_work(void *argument)
{
    struct core_holder *holder = argument;
    unsigned seen = 0;
    prctl(PR_SET_TIMERSLACK, 1UL); /* else the kernel may wait for another timer first */
    turns_want_short(true);
    atomic_store(&holder->tid, (int)syscall(SYS_gettid));
    while (!atomic_load(&holder->ends)) {
        syscall(SYS_futex, &holder->wanted, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
        unsigned wanted = atomic_load(&holder->wanted);
        if (wanted == seen)
            continue;
        seen = wanted;
        uint64_t at_ns = atomic_load(&holder->at_ns);
        sleep_until(at_ns);
        atomic_store(&holder->taken, seen);
        while (atomic_load(&holder->done) != seen &&
               clock_ns(CLOCK_MONOTONIC) < at_ns + CORE_HOLD_NS)
            ;
    }
    return NULL;
}

int core_holder_new(struct core_holder **ret)
{
    *ret = calloc(1, sizeof **ret);
    if (*ret)
        (*ret)->core = -1;
    return *ret ? 0 : -ENOMEM;
}

static void holder_wake(struct core_holder *holder)
{
    atomic_fetch_add(&holder->wanted, 1);
    syscall(SYS_futex, &holder->wanted, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void core_holder_free(struct core_holder *holder)
{
    if (holder && holder->begun) {
        atomic_store(&holder->ends, true);
        holder_wake(holder);
        pthread_join(holder->thread, NULL);
    }
    free(holder);
}

/* Signals are the main thread's. From here on its sleeps are exact as well. */
static bool holder_begin(struct core_holder *holder)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    holder->begun = pthread_create(&holder->thread, NULL, holder_work, holder) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    prctl(PR_SET_TIMERSLACK, 1UL);
    return holder->begun;
}

/* It sleeps: where it may run is where it will wake up. */
static bool holder_move(struct core_holder *holder, int core)
{
    cpu_set_t there;
    int tid = atomic_load(&holder->tid);
    if (holder->core == core)
        return true;
    CPU_ZERO(&there);
    CPU_SET(core, &there);
    if (!tid || sched_setaffinity(tid, sizeof there, &there))
        return false;
    holder->core = core;
    return true;
}

void core_holder_release(struct core_holder *holder)
{
    atomic_store(&holder->done, atomic_load(&holder->wanted));
}

/* A core that idles takes tens of microseconds to wake up, on some machines. */
static void sleep_short_of(struct core_holder *holder, uint64_t at_ns)
{
    uint64_t wake_ns = at_ns - (uint64_t)(1.25 * holder->late_ns);
    sleep_until(wake_ns);
    double late_ns = (double)(clock_ns(CLOCK_MONOTONIC) - wake_ns);
    holder->late_ns += 0.1 * (fmin(late_ns, AHEAD_NS / 2) - holder->late_ns);
}

uint64_t core_holder_take(struct core_holder *holder, int core)
{
    if (core < 0 || core >= CPU_SETSIZE || core == sched_getcpu())
        return 0;
    if ((!holder->begun && !holder_begin(holder)) || !holder_move(holder, core))
        return 0;
    uint64_t at_ns = clock_ns(CLOCK_MONOTONIC) + AHEAD_NS;
    atomic_store(&holder->at_ns, at_ns);
    holder_wake(holder);
    unsigned wanted = atomic_load(&holder->wanted);
    sleep_short_of(holder, at_ns);
    while (atomic_load(&holder->taken) != wanted && clock_ns(CLOCK_MONOTONIC) < at_ns + LATE_NS)
        ;
    if (clock_ns(CLOCK_MONOTONIC) < at_ns + LATE_NS)
        return at_ns;
    core_holder_release(holder); /* either of us is late */
    return 0;
}
