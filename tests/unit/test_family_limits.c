/* Following a process tree where there are many processes, few descriptors, short lives and lost
 * news. */
#define _GNU_SOURCE 1 /* ppoll */

#include "family.h"

#include <sys/resource.h>

enum { BURNERS = 20, STORM = 10000, SURVIVORS = 3 };

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

/* One after the other, each waited for at once: 20 ms and away. */
static void burn_in_children(struct child_side *side)
{
    child_say_ready(side);
    child_await_order(side);
    for (size_t i = 0; i < BURNERS; i++) {
        struct timespec used;
        if (fork_known(i) == 0) {
            do {
                clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
            } while (used.tv_sec == 0 && used.tv_nsec < 20000000);
            _exit(0);
        }
        wait(NULL);
    }
    shared->cpu_ns = cpu_of_children();
    child_await_order(side);
}

/* To two ticks of the clock in which the kernel tells a parent what its children cost. */
static void test_cpu_of_short_lives(void **state)
{
    uint64_t sum_ns = 0, tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    const volatile uint64_t *account_ns = &shared->cpu_ns;
    AUTO_CHILD struct child child = child_start(burn_in_children, NULL);
    child_await_ready(&child);
    AUTO_WATCH struct family_watch *watch = open_watch(state, true, child.pid);
    attend(watch);
    child_order(&child);
    attend_until(watch, told.ended == BURNERS);
    for (size_t i = 0; i < told.count; i++)
        sum_ns += told.list[i].pid == child.pid ? 0 : told.list[i].cpu_ns;
    await(*account_ns);
    assert_in_range(sum_ns, *account_ns - 2 * tick_ns, *account_ns + 2 * tick_ns);
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
        BOTH(test_many_children),
        BOTH(test_no_pidfds),
        EVENTS(test_cpu_of_short_lives),
        EVENTS(test_lost_news),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
