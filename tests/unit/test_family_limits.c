/* Following a process tree where there are many processes, few descriptors, short lives and lost
 * news. */
#define _GNU_SOURCE 1 /* ppoll */

#include "family.h"
#include "sampler/target/cpu_clock.h"

#include <sys/resource.h>

enum { BURNERS = 20, STORM = 10000, SURVIVORS = 3, SIBLINGS = 4 };
enum { MIDDLE, ORPHAN, WORKER };

static void gate_open(void)
{
    for (size_t i = 0; i < MANY; i++)
        sem_post(&shared->gate);
}

/* All live at once, until the gate opens. They wait without a CPU: there are many. */
static void fork_many(struct child_side *side)
{
    child_say_ready(side);
    child_await_order(side);
    for (size_t i = 0; i < MANY; i++) {
        if (fork_known(i) == 0) {
            while (sem_wait(&shared->gate))
                ;
            _exit((int)i % 7);
        }
    }
    while (wait(NULL) > 0)
        ;
    child_await_order(side);
}

static void check_many(void)
{
    for (size_t i = 0; i < MANY; i++) {
        const struct seen *seen = seen_of(known(i));
        assert_int_equal(seen->joined, 1);
        assert_int_equal(seen->ended, 1);
        assert_int_equal(seen->exit_status, i % 7);
    }
    assert_int_equal(told.count, MANY + 1);
}

static void test_many_children(void **state)
{
    AUTO_CHILD struct child child = child_start(fork_many, NULL);
    child_await_ready(&child);
    AUTO_WATCH struct family_watch *watch = open_watch(state, true, child.pid);
    attend(watch);
    if (method_of(state) == FAMILY_EVENTS)
        gate_open(); /* each may end at once */
    child_order(&child);
    attend_until(watch, told.count == MANY + 1);
    if (method_of(state) != FAMILY_EVENTS)
        gate_open();
    attend_until(watch, told.ended == MANY);
    check_many();
}

/* No descriptors left for pidfds. */
static void test_no_pidfds(void **state)
{
    struct rlimit before, none;
    AUTO_CHILD struct child child = child_start(fork_many, NULL);
    child_await_ready(&child);
    AUTO_WATCH struct family_watch *watch = open_watch(state, true, child.pid);
    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = 40; /* what is left below that is for reading files */
    attend(watch);
    setrlimit(RLIMIT_NOFILE, &none);
    child_order(&child);
    attend_until(watch, told.count == MANY + 1);
    gate_open();
    attend_until(watch, told.ended == MANY);
    setrlimit(RLIMIT_NOFILE, &before);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(seen_of(known(i))->joined, 1);
}

static uint64_t cpu_of_children(void)
{
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u;
}

static void burn_until(long used_ns)
{
    struct timespec used;
    do {
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    } while (used.tv_sec == 0 && used.tv_nsec < used_ns);
}

/* One after the other, each waited for at once: 20 ms and away. */
static void burn_in_children(struct child_side *side)
{
    child_say_ready(side);
    child_await_order(side);
    for (size_t i = 0; i < BURNERS; i++) {
        if (fork_known(i) == 0) {
            burn_until(20000000);
            _exit(0);
        }
        wait(NULL);
    }
    shared->cpu_ns = cpu_of_children();
    child_await_order(side);
}

/* Together, with a rest between; all are waited for before anybody looks again. */
static void burn_beside_each_other(struct child_side *side)
{
    child_say_ready(side);
    child_await_order(side);
    for (size_t i = 0; i < SIBLINGS; i++) {
        if (fork_known(i) == 0) {
            burn_until(20000000);
            sem_wait(&shared->gate);
            burn_until(30000000 + 10000000 * (long)i);
            _exit(0);
        }
    }
    for (size_t i = 0; i < SIBLINGS; i++)
        wait(NULL);
    shared->cpu_ns = cpu_of_children();
    child_await_order(side);
}

/* To two ticks of the clock in which the kernel tells a parent what its children cost. */
static void check_sum(pid_t parent)
{
    uint64_t sum_ns = 0, tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    const volatile uint64_t *account_ns = &shared->cpu_ns;
    for (size_t i = 0; i < told.count; i++)
        sum_ns += told.list[i].pid == parent ? 0 : told.list[i].cpu_ns;
    await(*account_ns);
    assert_in_range(sum_ns, *account_ns - 2 * tick_ns, *account_ns + 2 * tick_ns);
}

static bool has_burnt(size_t index, uint64_t cpu_ns)
{
    uint64_t used_ns;
    return !cpu_clock_read(known(index), &used_ns) && used_ns >= cpu_ns;
}

/* Everybody's account is read anew. */
static void attend_beats(struct family_watch *watch)
{
    for (int beats = 0; beats < 3; beats++) {
        uint64_t beat_ns = family_watch_deadline_ns(watch);
        attend_until(watch, family_watch_deadline_ns(watch) != beat_ns);
    }
}

/* What was read of each while it lived is its own, the rest somebody's: none of it twice. */
static void test_cpu_of_siblings(void **state)
{
    const volatile uint64_t *account_ns = &shared->cpu_ns;
    AUTO_CHILD struct child child = child_start(burn_beside_each_other, NULL);
    child_await_ready(&child);
    AUTO_WATCH struct family_watch *watch = open_watch(state, true, child.pid);
    attend(watch);
    child_order(&child);
    attend_until(watch, told.count == SIBLINGS + 1);
    for (size_t i = 0; i < SIBLINGS; i++)
        await(has_burnt(i, 20000000));
    attend_beats(watch);
    gate_open();
    await(*account_ns);
    attend_until(watch, told.ended == SIBLINGS);
    check_sum(child.pid);
}

/* A child whose own child it leaves behind; both are waited for by whom that adopts. */
static void burn_and_leave(struct child_side *side)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    child_say_ready(side);
    child_await_order(side);
    if (fork_known(0) == 0) {
        bool is_orphan = fork_known(1) == 0;
        burn_until(is_orphan ? 100000000 : 20000000);
        sem_wait(&shared->gate);
        burn_until(is_orphan ? 110000000 : 30000000);
        _exit(0);
    }
    for (size_t i = 0; i < 2; i++)
        wait(NULL);
    shared->cpu_ns = cpu_of_children();
    child_await_order(side);
}

static void test_cpu_of_orphans(void **state)
{
    const volatile uint64_t *account_ns = &shared->cpu_ns;
    AUTO_CHILD struct child child = child_start(burn_and_leave, NULL);
    child_await_ready(&child);
    AUTO_WATCH struct family_watch *watch = open_watch(state, true, child.pid);
    attend(watch);
    child_order(&child);
    attend_until(watch, told.count == 3);
    await(has_burnt(0, 20000000) && has_burnt(1, 100000000));
    attend_beats(watch);
    gate_open();
    await(*account_ns);
    attend_until(watch, told.ended == 2);
    check_sum(child.pid);
}

static void test_cpu_of_short_lives(void **state)
{
    AUTO_CHILD struct child child = child_start(burn_in_children, NULL);
    child_await_ready(&child);
    AUTO_WATCH struct family_watch *watch = open_watch(state, true, child.pid);
    attend(watch);
    child_order(&child);
    attend_until(watch, told.ended == BURNERS);
    check_sum(child.pid);
}

/* One works and is waited for by its parent, who then ends together with its own: both are waited
 * for by who adopts, and whose child the worker never was. */
static void leave_an_orphan(struct child_side *side)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    child_say_ready(side);
    child_await_order(side);
    if (fork_known(MIDDLE) == 0) {
        if (fork_known(ORPHAN) == 0 && fork_known(WORKER) == 0) {
            burn_until(50000000);
            sem_wait(&shared->gate);
            _exit(0);
        }
        wait(NULL);
        pause();
    }
    waitpid(known(MIDDLE), NULL, 0);
    waitpid(known(ORPHAN), NULL, 0);
    shared->cpu_ns = cpu_of_children();
    child_await_order(side);
}

static void test_cpu_of_an_orphans_children(void **state)
{
    const volatile uint64_t *account_ns = &shared->cpu_ns;
    AUTO_CHILD struct child child = child_start(leave_an_orphan, NULL);
    child_await_ready(&child);
    AUTO_WATCH struct family_watch *watch = open_watch(state, true, child.pid);
    attend(watch);
    child_order(&child);
    attend_until(watch, told.count == 4);
    gate_open();
    attend_until(watch, seen_of(known(WORKER))->ended);
    kill(known(MIDDLE), SIGKILL);
    await(*account_ns);
    attend_until(watch, told.ended == 3);
    check_sum(child.pid);
    assert_in_range(seen_of(known(WORKER))->cpu_ns, 30000000, 70000000);
    assert_in_range(seen_of(known(MIDDLE))->cpu_ns, 0, 25000000);
}

static void live_briefly(void)
{
    pid_t pid = vfork();
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
}

/* More news than the socket holds while nobody looks; those who live are found, those who ended
 * are gone. */
static void fork_storm(struct child_side *side)
{
    for (int i = 0; i < STORM; i++)
        live_briefly();
    for (size_t i = 0; i < SURVIVORS; i++) {
        if (fork_known(i) == 0) {
            child_await_order(side);
            _exit(0);
        }
    }
    child_say_ready(side);
    child_await_order(side);
}

static void test_lost_news(void **state)
{
    AUTO_CHILD struct child child = child_start(fork_storm, NULL);
    AUTO_WATCH struct family_watch *watch = open_watch(state, true, child.pid);
    child_await_ready(&child);
    attend_until(watch, family_watch_count(watch) == SURVIVORS + 1 && told.count > SURVIVORS);
    assert_in_range(told.count, SURVIVORS + 1, STORM); /* some were lost indeed */
    for (size_t i = 0; i < SURVIVORS; i++)
        assert_int_equal(seen_of(known(i))->joined, 1);
    for (size_t i = 0; i < SURVIVORS; i++)
        kill(known(i), SIGKILL);
    attend_until(watch, family_watch_count(watch) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_many_children),        BOTH(test_no_pidfds),
        EVENTS(test_cpu_of_short_lives), BOTH(test_cpu_of_siblings),
        BOTH(test_cpu_of_orphans),       BOTH(test_cpu_of_an_orphans_children),
        EVENTS(test_lost_news),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
