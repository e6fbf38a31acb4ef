/* A process that stands as a whole while it is written to, and runs on as one. */
#include "child.h"
#include "sampler/target/stillness.h"

#include <errno.h>
#include <sched.h>

enum { THREADS = 4, THREADS_MOST = 256, THREADS_TOO_MANY = 300, WORD = 1234567 };

struct counters {
    atomic_ulong spins[THREADS];
};

static struct counters *counters;
static uint64_t word; /* the child's own copy is written to */

static int set_up(void **state)
{
    (void)state;
    counters = shared_zeroed(counters, sizeof *counters);
    return 0;
}

static void *spin(void *counter)
{
    atomic_ulong *spins = counter;
    while (++*spins)
        ;
    return NULL;
}

static void spin_and_tell(struct child_side *side)
{
    pthread_t thread;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread, NULL, spin, &counters->spins[i]);
    child_say_ready(side);
    child_await_order(side);
    _exit(*(volatile uint64_t *)&word == WORD ? 0 : 1);
}

static void *wait_for_end(void *side)
{
    child_await_order(side);
    return NULL;
}

static void begin_many(struct child_side *side)
{
    pthread_t thread;
    for (int i = 0; i < THREADS_TOO_MANY; i++)
        pthread_create(&thread, NULL, wait_for_end, side);
    child_say_ready(side);
    child_await_order(side);
}

static struct process *process_of(const struct child *child)
{
    struct process *process;
    struct failure why;
    child_await_ready(child);
    assert_int_equal(process_open(child->pid, &process, &why), 0);
    return process;
}

static void still_begin(const struct process *process, struct stillness *still)
{
    int error;
    while ((error = stillness_begin(process, THREADS_MOST, still)) == -EAGAIN) /* in a page fault */
        sched_yield();
    assert_int_equal(error, 0);
}

static void test_all_stand(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(spin_and_tell, NULL);
    struct process *process = process_of(&child);
    const struct timespec moment = { .tv_nsec = 20000000 };
    const uint64_t written = WORD;
    unsigned long before[THREADS];
    struct stillness still;
    for (int i = 0; i < THREADS; i++)
        await(counters->spins[i]);

    still_begin(process, &still);
    assert_int_equal(still.count, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        before[i] = counters->spins[i];
    nanosleep(&moment, NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(counters->spins[i], before[i]);
    assert_int_equal(stillness_write(&still, (uintptr_t)&word, &written, sizeof written), 0);
    assert_int_equal(stillness_write(&still, 16, &written, sizeof written), -EFAULT);
    stillness_end(&still);

    for (int i = 0; i < THREADS; i++)
        await(counters->spins[i] != before[i]);
    process_close(process);
    child_order(&child);
    assert_int_equal(child_wait(&child), 0);
}

/* They would stand for too long: none does. */
static void test_too_many(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(begin_many, NULL);
    struct process *process = process_of(&child);
    struct stillness still;
    assert_int_equal(stillness_begin(process, THREADS_MOST, &still), -E2BIG);
    process_close(process);
}

static void test_gone(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(spin_and_tell, NULL);
    struct process *process = process_of(&child);
    struct stillness still;
    child_kill(&child);
    assert_int_equal(stillness_begin(process, THREADS_MOST, &still), -ESRCH);
    process_close(process);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_all_stand, set_up),
        cmocka_unit_test_setup(test_too_many, set_up),
        cmocka_unit_test_setup(test_gone, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
