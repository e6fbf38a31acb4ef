/* Which threads there are, seen from outside. */
#define _GNU_SOURCE 1 /* gettid, unshare */

#include "child.h"
#include "sampler/target/threads.h"

#include <errno.h>

enum { THREADS = 5, CHAIN = 256, ALIVE = 4, CHAIN_LOOKS = 20000 };

struct board {
    atomic_int count;
    pid_t pids[THREADS];
    /* of threads that come and go: all below `begun` have, all from `leaving` on are there */
    atomic_uint begun, leaving;
    _Atomic pid_t chain[CHAIN];
};

static struct board *board;

static int set_up(void **state)
{
    (void)state;
    board = shared_zeroed(board, sizeof *board);
    return 0;
}

static void *thread_named(void *side)
{
    char name[16];
    int place = board->count++;
    snprintf(name, sizeof name, "worker %d\\)", place);
    prctl(PR_SET_NAME, name);
    board->pids[place] = gettid();
    child_say_ready(side);
    child_await_order(side);
    return NULL;
}

static void start_threads(struct child_side *side)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, thread_named, side);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static int place_of(pid_t inner_tid)
{
    for (int i = 0; i < THREADS; i++)
        if (board->pids[i] == inner_tid)
            return i;
    return -1;
}

static void check_threads(const struct process *process)
{
    AUTO_FREE struct os_thread *threads = NULL;
    assert_int_equal(threads_list(process, &threads), THREADS + 1);
    assert_int_equal(threads[0].tid, process->pid);
    assert_int_equal(threads[0].inner_tid, process->inner_pid);
    int seen = 0;
    for (int i = 1; i <= THREADS; i++) {
        char name[16];
        int place = place_of(threads[i].inner_tid);
        assert_true(place >= 0);
        snprintf(name, sizeof name, "worker %d\\)", place);
        assert_string_equal(threads[i].comm, name);
        assert_true(threads[i].tid > threads[i - 1].tid);
        seen |= 1 << place;
    }
    assert_int_equal(seen, (1 << THREADS) - 1);
}

static void test_list(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(start_threads, NULL);
    for (int i = 0; i < THREADS; i++)
        child_await_ready(&child);
    AUTO_PROCESS struct process *process = open_child(&child);
    check_threads(process);
    pid_t tid = board->pids[0];
    child_kill(&child);

    struct os_thread *none = NULL;
    struct wait_state wait;
    assert_int_equal(threads_list(process, &none), -ESRCH);
    assert_null(none);
    assert_int_equal(thread_read_wait(process, tid, &wait), -ESRCH);
}

static void *link_live(void *argument)
{
    unsigned place = (unsigned)(uintptr_t)argument;
    board->chain[place % CHAIN] = gettid();
    board->begun = place + 1;
    while (board->leaving <= place)
        sched_yield();
    return NULL;
}

/* Some are there at each moment, and the oldest of them ends at the next. */
static void chain_threads(struct child_side *side)
{
    pthread_t threads[ALIVE];
    child_say_ready(side);
    for (unsigned i = 0;; i++) {
        if (i >= ALIVE) {
            board->leaving = i + 1 - ALIVE;
            pthread_join(threads[i % ALIVE], NULL);
        }
        pthread_create(&threads[i % ALIVE], NULL, link_live, (void *)(uintptr_t)i);
        while (board->begun <= i)
            sched_yield();
    }
}

static bool is_listed(const struct os_thread *threads, int count, pid_t tid)
{
    for (int i = 0; i < count; i++)
        if (threads[i].inner_tid == tid)
            return true;
    return false;
}

static void test_list_while_others_end(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(chain_threads, NULL);
    child_await_ready(&child);
    AUTO_PROCESS struct process *process = open_child(&child);
    unsigned compared = 0, places[ALIVE];
    for (int look = 0; look < CHAIN_LOOKS; look++) {
        AUTO_FREE struct os_thread *threads = NULL;
        pid_t tids[ALIVE];
        unsigned begun = board->begun, first = begun < ALIVE ? 0 : begun - ALIVE;
        for (unsigned i = first; i < begun; i++) {
            places[i - first] = i;
            tids[i - first] = board->chain[i % CHAIN];
        }
        int count = threads_list(process, &threads);
        assert_true(count > 0);
        for (unsigned i = 0; i < begun - first; i++)
            if (places[i] >= board->leaving) {
                assert_true(is_listed(threads, count, tids[i]));
                compared++;
            }
    }
    assert_true(compared > CHAIN_LOOKS / 4);
}

/* The child's child is number 1 of a PID namespace of its own; we learn its pid here from the
 * argument. */
static void start_threads_elsewhere(struct child_side *side)
{
    if (unshare(CLONE_NEWPID))
        _exit(77);
    pid_t pid = fork();
    if (!pid) {
        end_with_parent(0); /* which has no number in there */
        start_threads(side);
        _exit(0);
    }
    *(atomic_int *)side->argument = pid;
    child_say_ready(side);
    waitpid(pid, NULL, 0);
}

static void test_list_in_another_namespace(void **state)
{
    (void)state;
    if (geteuid()) {
        SKIP("needs root to make a PID namespace");
    }
    atomic_int *pid = shared_new(sizeof *pid);
    AUTO_CHILD struct child child = child_start(start_threads_elsewhere, pid);
    for (int i = 0; i < THREADS + 1; i++)
        child_await_ready(&child);
    struct child inner = { .pid = *pid };
    AUTO_PROCESS struct process *process = open_child(&inner);
    assert_true(process->other_namespace);
    assert_int_equal(process->inner_pid, 1);
    check_threads(process);
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_list, set_up),
        cmocka_unit_test_setup(test_list_while_others_end, set_up),
        cmocka_unit_test_setup(test_list_in_another_namespace, set_up),
    };
    return cmocka_run_group_tests_name("thread_list", tests, NULL, NULL);
}
