/* A core that is held: who runs there stands, and runs on once it is let go or nobody lets go. */
#define _GNU_SOURCE 1 /* sched_setaffinity */

#include "child.h"
#include "sampler/base/clock_read.h"
#include "sampler/target/core_holder.h"

enum { TAKES = 200, TRIES = 20000, LOOK_NS = 10000 };

static atomic_ulong *counted;

static void pin(pid_t tid, int core)
{
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(core, &only);
    assert_int_equal(sched_setaffinity(tid, sizeof only, &only), 0);
}

/* The first and the last that we may use; the same one where there is but one. */
static void cores_find(int *ret_first, int *ret_last)
{
    cpu_set_t all;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    *ret_first = *ret_last = -1;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all)) {
            *ret_first = *ret_first < 0 ? i : *ret_first;
            *ret_last = i;
        }
}

static void count_for_ever(struct child_side *side)
{
    child_say_ready(side);
    for (;;)
        atomic_fetch_add(counted, 1);
}

static void wait_ns(uint64_t length_ns)
{
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + length_ns;
    while (clock_ns(CLOCK_MONOTONIC) < end_ns)
        ;
}

/* Does it count within this time? */
static bool gets_on(uint64_t length_ns)
{
    unsigned long before = atomic_load(counted);
    wait_ns(length_ns);
    return atomic_load(counted) != before;
}

static void test_held(void **state)
{
    (void)state;
    int ours, theirs;
    cores_find(&ours, &theirs);
    if (ours == theirs)
        SKIP("one core: whoever runs here holds it");
    counted = shared_zeroed(counted, sizeof *counted);
    AUTO_CHILD struct child child = child_start(count_for_ever, NULL);
    pin(child.pid, theirs);
    child_await_ready(&child);
    cpu_set_t before;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    struct core_holder *holder;
    assert_int_equal(core_holder_new(&holder), 0);
    assert_int_equal(core_holder_take(holder, CPU_SETSIZE), 0);
    assert_int_equal(core_holder_take(holder, -1), 0);
    pin(0, ours);
    assert_int_equal(core_holder_take(holder, ours), 0);

    await(core_holder_take(holder, theirs)); /* its helper has to begin */
    unsigned taken = 0, stood = 0;
    for (unsigned i = 0; i < TRIES && taken < TAKES; i++) { /* others may have the core */
        uint64_t asked_ns = clock_ns(CLOCK_MONOTONIC);
        uint64_t since_ns = core_holder_take(holder, theirs);
        if (!since_ns)
            continue;
        assert_true(since_ns > asked_ns);
        taken++;
        stood += !gets_on(LOOK_NS);
        core_holder_release(holder);
    }
    assert_int_equal(taken, TAKES);
    assert_true(stood > TAKES / 2);
    await(gets_on(LOOK_NS));
    await(core_holder_take(holder, theirs)); /* and nobody lets go */
    await(gets_on(LOOK_NS));
    core_holder_free(holder);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

static void test_never_used(void **state)
{
    (void)state;
    struct core_holder *holder;
    assert_int_equal(core_holder_new(&holder), 0);
    core_holder_free(holder);
    core_holder_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_held),
        cmocka_unit_test(test_never_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
