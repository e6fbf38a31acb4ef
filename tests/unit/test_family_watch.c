/* Following a process tree, by the kernel's events and by polling: nobody missed, nobody told of
 * twice. */
#define _GNU_SOURCE 1 /* ppoll, gettid */

#include "family.h"
#include "sampler/target/proc_file.h"

static void fork_one(struct child_side *side)
{
    child_say_ready(side);
    child_await_order(side);
    if (fork_known(0) == 0) {
        child_await_order(side);
        _exit(5);
    }
    wait(NULL);
    child_await_order(side);
    _exit(6);
}

static void test_fork(void **state)
{
    AUTO_CHILD struct child child = child_start(fork_one, NULL);
    child_await_ready(&child);
    AUTO_WATCH struct family_watch *watch = open_watch(state, true, child.pid);
    attend_until(watch, told.count == 1);
    assert_false(seen_of(child.pid)->forked);
    assert_int_equal(seen_of(child.pid)->ppid, getpid());

    child_order(&child);
    attend_until(watch, told.count == 2);
    pid_t pid = known(0);
    assert_int_equal(family_watch_count(watch), 2);
    assert_int_equal(seen_of(pid)->ppid, child.pid);
    assert_true(seen_of(pid)->forked);
    child_order(&child);
    attend_until(watch, told.ended == 1);
    assert_int_equal(seen_of(pid)->exit_status, 5);
    child_order(&child);
    attend_until(watch, told.ended == 2);
    assert_int_equal(seen_of(child.pid)->exit_status, 6);
    assert_int_equal(family_watch_count(watch), 0);
    assert_true(family_watch_deadline_ns(watch) == UINT64_MAX);
    assert_int_equal(told.count, 2);
}

/* What is there when we come joins as found, whoever descends from whom. */
static void test_present_descendants(void **state)
{
    AUTO_CHILD struct child child = child_start(fork_one, NULL);
    child_await_ready(&child);
    child_order(&child);
    known(0);
    AUTO_WATCH struct family_watch *watch = open_watch(state, true, child.pid);
    attend(watch);
    assert_int_equal(told.count, 2);
    assert_false(seen_of(shared->pids[0])->forked);
    assert_int_equal(seen_of(shared->pids[0])->ppid, child.pid);
}

/* Never waits for its child. */
static void neglect(struct child_side *side)
{
    child_say_ready(side);
    child_await_order(side);
    if (fork_known(0) == 0)
        _exit(7);
    child_await_order(side);
}

/* Whoever ended and was not waited for is found by every scan, and told of once. */
static void test_zombie(void **state)
{
    struct family_event event;
    AUTO_CHILD struct child child = child_start(neglect, NULL);
    AUTO_CHILD struct child other = child_start(rest, NULL);
    child_await_ready(&child);
    child_await_ready(&other);
    AUTO_WATCH struct family_watch *watch = open_watch(state, true, child.pid);
    attend(watch);
    child_order(&child);
    attend_until(watch, told.ended == 1);
    assert_int_equal(seen_of(known(0))->exit_status, 7);
    assert_int_equal(thread_letter(known(0)), 'Z');
    assert_int_equal(
        family_watch_next(watch, clock_ns(CLOCK_MONOTONIC) + UINT64_C(3600000000000), &event), 0);
    assert_int_equal(family_watch_add(watch, other.pid), 0);
    assert_int_equal(family_watch_add(watch, known(0)), -ESRCH);
    attend(watch);
    assert_int_equal(told.count, 3);
    assert_int_equal(told.ended, 1);
}

static void test_without_descendants(void **state)
{
    AUTO_CHILD struct child child = child_start(fork_one, NULL);
    child_await_ready(&child);
    AUTO_WATCH struct family_watch *watch = open_watch(state, false, child.pid);
    for (int i = 0; i < 3; i++)
        child_order(&child);
    attend_until(watch, told.ended == 1);
    assert_int_equal(told.count, 1);
    assert_int_equal(seen_of(child.pid)->exit_status, 6);
}

static void test_several_roots(void **state)
{
    AUTO_CHILD struct child first = child_start(rest, NULL);
    AUTO_CHILD struct child second = child_start(rest, NULL);
    child_await_ready(&first);
    child_await_ready(&second);
    AUTO_WATCH struct family_watch *watch = open_watch(state, true, first.pid);
    assert_int_equal(family_watch_add(watch, second.pid), 0);
    assert_int_equal(family_watch_add(watch, first.pid), 0);
    attend(watch);
    assert_int_equal(told.count, 2);
    kill(second.pid, SIGKILL);
    attend_until(watch, told.ended == 1);
    assert_int_equal(seen_of(second.pid)->exit_status, 128 + SIGKILL);
    assert_int_equal(family_watch_count(watch), 1);
}

static void *linger(void *unused)
{
    (void)unused;
    shared->pids[0] = gettid();
    shared->go = true;
    pause();
    return NULL;
}

static void lingering_thread(struct child_side *side)
{
    pthread_t thread;
    pthread_create(&thread, NULL, linger, NULL);
    rest(side);
}

static void test_what_is_no_process(void **state)
{
    AUTO_CHILD struct child child = child_start(lingering_thread, NULL);
    child_await_ready(&child);
    await(shared->go);
    AUTO_WATCH struct family_watch *watch = open_watch(state, true, 0);
    assert_int_equal(family_watch_add(watch, shared->pids[0]), -ESRCH);
    assert_int_equal(family_watch_add(watch, INT_MAX), -ESRCH);
    attend(watch);
    assert_int_equal(told.count, 0);
}

/* Its main thread ends first: the process lives as long as any thread. */
static void *outlive(void *side)
{
    child_say_ready(side);
    child_await_order(side);
    _exit(9);
}

static void main_thread_ends(struct child_side *side)
{
    pthread_t thread;
    struct child_side *copy = malloc(sizeof *copy);
    *copy = *side;
    child_await_order(side);
    pthread_create(&thread, NULL, outlive, copy);
    pthread_exit(NULL);
}

static void test_main_thread_ends_first(void **state)
{
    AUTO_CHILD struct child child = child_start(main_thread_ends, NULL);
    AUTO_WATCH struct family_watch *watch = open_watch(state, true, child.pid);
    child_order(&child);
    child_await_ready(&child);
    attend_until(watch, thread_letter(child.pid) == 'Z');
    attend(watch);
    assert_int_equal(told.ended, 0);
    child_order(&child);
    attend_until(watch, told.ended == 1);
    assert_int_equal(seen_of(child.pid)->exit_status, 9);
}

static void become_shell(const struct child_side *side, const char *script)
{
    dup2(side->orders, STDIN_FILENO);
    dup2(side->ready, STDOUT_FILENO);
    execl("/bin/sh", "sh", "-c", script, (char *)NULL);
    _exit(91);
}

static void *thread_become_shell(void *side)
{
    become_shell(side, "echo; read x; exit 4");
    return NULL;
}

/* The thread takes the main thread's id, whose end is not the process's. */
static void exec_in_thread(struct child_side *side)
{
    pthread_t thread;
    child_await_order(side);
    pthread_create(&thread, NULL, thread_become_shell, side);
    for (;;)
        pause();
}

static void test_exec_by_thread(void **state)
{
    AUTO_CHILD struct child child = child_start(exec_in_thread, NULL);
    AUTO_WATCH struct family_watch *watch = open_watch(state, true, child.pid);
    attend(watch);
    child_order(&child);
    child_await_ready(&child);
    attend_until(watch, seen_of(child.pid)->execed);
    assert_int_equal(write(child.orders, "\n", 1), 1);
    attend_until(watch, told.ended == 1);
    assert_int_equal(told.count, 1);
    assert_int_equal(seen_of(child.pid)->execed, 1);
    assert_int_equal(seen_of(child.pid)->exit_status, 4);
}

/* A shell, which forks a shell, which becomes a third one; each step waits for a line. */
static void exec_chain(struct child_side *side)
{
    child_say_ready(side);
    child_await_order(side);
    become_shell(side, "read x; sh -c 'read x; exec sh -c \"read x; exit 3\"'; exit 2");
}

static void test_shell_chain(void **state)
{
    AUTO_CHILD struct child child = child_start(exec_chain, NULL);
    child_await_ready(&child);
    AUTO_WATCH struct family_watch *watch = open_watch(state, true, child.pid);
    attend(watch);
    child_order(&child);
    attend_until(watch, seen_of(child.pid)->execed == 1);
    assert_int_equal(write(child.orders, "\n", 1), 1);
    attend_until(watch, told.count == 2);
    struct seen *inner = &told.list[1];
    assert_int_equal(inner->ppid, child.pid);
    bool polling = method_of(state) == FAMILY_POLLING; /* may come after the first exec */
    attend_until(watch, polling || inner->execed == 1);
    unsigned before = inner->execed;
    assert_int_equal(write(child.orders, "\n", 1), 1);
    attend_until(watch, inner->execed > before);
    assert_int_equal(write(child.orders, "\n", 1), 1);
    attend_until(watch, told.ended == 2);
    assert_int_equal(told.count, 2);
    assert_int_equal(inner->exit_status, 3);
    assert_int_equal(seen_of(child.pid)->exit_status, 2);
}

/* The middle one ends at once, or at an order; its child lives on, below somebody else. */
static void fork_twice(struct child_side *side)
{
    bool at_order = side->argument;
    setsid();
    child_say_ready(side);
    child_await_order(side);
    pid_t middle = fork();
    if (middle == 0) {
        pid_t orphan = fork();
        if (orphan)
            shared->pids[1] = orphan;
        if (!orphan || at_order)
            child_await_order(side);
        _exit(0);
    }
    shared->pids[0] = middle;
    waitpid(middle, NULL, 0);
    child_await_order(side);
}

static bool is_adopted(pid_t pid)
{
    struct proc_stat stat;
    assert_int_equal(proc_read_pid_stat(pid, &stat), 0);
    return stat.parent == getpid();
}

static void check_orphan(void **state, void *at_order)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    AUTO_CHILD struct child child = child_start(fork_twice, at_order);
    child_await_ready(&child);
    AUTO_WATCH struct family_watch *watch = open_watch(state, true, child.pid);
    attend(watch);
    child_order(&child);
    pid_t middle = known(0), orphan = known(1);
    if (at_order) {
        attend_until(watch, told.count == 3);
        assert_int_equal(seen_of(orphan)->ppid, middle);
        kill(middle, SIGKILL); /* an order could be taken by the other */
        attend_until(watch, seen_of(middle)->ended);
    }
    await(is_adopted(orphan));
    attend_until(watch, seen_of(orphan)->joined);
    assert_true(seen_of(orphan)->forked);
    kill(orphan, SIGTERM);
    attend_until(watch, seen_of(orphan)->ended);
    assert_int_equal(seen_of(orphan)->exit_status, 128 + SIGTERM);
    assert_int_equal(waitpid(orphan, NULL, 0), orphan);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}

static void test_orphan(void **state)
{
    check_orphan(state, (void *)"at order");
}

static void test_orphan_of_somebody_unseen(void **state)
{
    check_orphan(state, NULL);
}

static void fork_and_bury(struct child_side *side)
{
    child_say_ready(side);
    child_await_order(side);
    if (fork_known(0) == 0)
        _exit(5);
    wait(NULL);
    shared->go = true;
    child_await_order(side);
}

/* Too short a life to be found is believed to have been there, below a member; and who is there is
 * asked. */
static void test_heard_of(void **state)
{
    AUTO_CHILD struct child child = child_start(fork_and_bury, NULL);
    AUTO_CHILD struct child other = child_start(rest, NULL);
    child_await_ready(&child);
    child_await_ready(&other);
    AUTO_WATCH struct family_watch *watch = open_watch(state, true, child.pid);
    attend(watch);
    child_order(&child);
    await(shared->go);
    attend(watch);
    assert_int_equal(told.count, 1);

    family_watch_hear(watch, other.pid, child.pid);
    family_watch_hear(watch, known(0), other.pid);
    attend(watch);
    assert_int_equal(told.count, 1);
    for (int i = 0; i < 2; i++)
        family_watch_hear(watch, known(0), child.pid);
    attend_until(watch, told.ended == 1);
    assert_int_equal(told.count, 2);
    assert_true(seen_of(known(0))->forked);
    assert_int_equal(seen_of(known(0))->ppid, child.pid);
    family_watch_hear(watch, known(0), child.pid);
    attend(watch);
    assert_int_equal(told.count, 2);
}

/* Whoever has the shim says so again when it is another program: known before any beat, which must
 * not be due meanwhile. */
static void test_exec_heard_of(void **state)
{
    struct family_event event;
    AUTO_CHILD struct child child = child_start(exec_chain, NULL);
    child_await_ready(&child);
    AUTO_WATCH struct family_watch *watch = open_watch(state, true, child.pid);
    attend(watch);
    struct proc_stat before, now;
    assert_int_equal(proc_read_pid_stat(child.pid, &before), 0);
    child_order(&child);
    await(proc_read_pid_stat(child.pid, &now) == 0 && now.stack_start &&
          now.stack_start != before.stack_start);
    family_watch_hear(watch, child.pid, getpid());
    assert_int_equal(family_watch_next(watch, 0, &event), 1);
    assert_int_equal(event.change, FAMILY_EXECED);
    assert_int_equal(event.pid, child.pid);
    take(&event);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_fork),
        BOTH(test_present_descendants),
        BOTH(test_zombie),
        BOTH(test_without_descendants),
        BOTH(test_several_roots),
        BOTH(test_what_is_no_process),
        BOTH(test_main_thread_ends_first),
        BOTH(test_exec_by_thread),
        BOTH(test_shell_chain),
        BOTH(test_orphan),
        BOTH(test_orphan_of_somebody_unseen),
        WITH("test_heard_of by polling", test_heard_of, 1),
        WITH("test_exec_heard_of by polling", test_exec_heard_of, 1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
