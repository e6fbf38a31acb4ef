/* Following a process tree, by the kernel's events and by polling: nobody missed, nobody told of
 * twice. */
#define _GNU_SOURCE 1 /* ppoll */

#include "child.h"
#include "sampler/target/family_watch.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/resource.h>

DEFINE_CLEANUP(struct family_watch *, family_watch_close)
#define AUTO_WATCH CLEANUP(family_watch_closep)

enum { MANY = 200, SEEN = 32768, BURNERS = 20, STORM = 10000, SURVIVORS = 3 };

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
    atomic_uint count;
    atomic_bool go;
    uint64_t cpu_ns;
} * shared;

static int set_up(void **state)
{
    (void)state;
    if (!shared)
        shared = shared_new(sizeof *shared);
    memset(shared, 0, sizeof *shared);
    memset(&told, 0, sizeof told);
    return 0;
}

static const enum family_method both[] = { FAMILY_EVENTS, FAMILY_POLLING };

static enum family_method method_of(void **state)
{
    return *(const enum family_method *)*state;
}

static struct family_watch *open_watch(void **state, bool follow, pid_t root)
{
    struct family_watch *watch;
    struct failure why = { 0 };
    if (family_watch_open(follow, method_of(state), &watch, &why))
        fail_msg("family_watch_open: %s", why.text);
    if (root)
        assert_int_equal(family_watch_add(watch, root), 0);
    return watch;
}

static struct seen *seen_of(pid_t pid)
{
    for (size_t i = 0; i < told.count; i++)
        if (told.list[i].pid == pid)
            return &told.list[i];
    assert_in_range(told.count, 0, SEEN - 1);
    told.list[told.count] = (struct seen){ .pid = pid, .exit_status = -2 };
    return &told.list[told.count++];
}

/* One process's story: it joins, execs any number of times, ends, and is never heard of again. */
static void take(const struct family_event *event)
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

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* As the profiler's loop does it. */
static void attend(struct family_watch *watch)
{
    struct family_event event;
    uint64_t now = now_ns(), until = family_watch_deadline_ns(watch), longest = now + 100000000;
    until = until < longest ? until : longest;
    uint64_t gap = until > now ? until - now : 0;
    const struct timespec wait = { (time_t)(gap / 1000000000u), (long)(gap % 1000000000u) };
    struct pollfd fd = { family_watch_fd(watch), POLLIN, 0 };
    ppoll(&fd, 1, &wait, NULL);
    int result;
    while ((result = family_watch_next(watch, now_ns(), &event)) > 0)
        take(&event);
    assert_int_equal(result, 0);
}

#define attend_until(watch, condition) await((attend(watch), (condition)))

/* In a target: a child of its own, which the test knows. */
static pid_t fork_known(size_t index)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        end_with_parent(parent);
    else
        shared->pids[index] = pid;
    return pid;
}

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
    pid_t pid = shared->pids[0];
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

static void test_method(void **state)
{
    AUTO_WATCH struct family_watch *watch = open_watch(state, true, 0);
    assert_int_equal(family_watch_method(watch), method_of(state));
}

/* What is there when we come joins as found, whoever descends from whom. */
static void test_present_descendants(void **state)
{
    AUTO_CHILD struct child child = child_start(fork_one, NULL);
    child_await_ready(&child);
    child_order(&child);
    await(((volatile pid_t *)shared->pids)[0]);
    AUTO_WATCH struct family_watch *watch = open_watch(state, true, child.pid);
    attend(watch);
    assert_int_equal(told.count, 2);
    assert_false(seen_of(shared->pids[0])->forked);
    assert_int_equal(seen_of(shared->pids[0])->ppid, child.pid);
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

static void check_orphan(void **state, void *at_order)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    AUTO_CHILD struct child child = child_start(fork_twice, at_order);
    child_await_ready(&child);
    AUTO_WATCH struct family_watch *watch = open_watch(state, true, child.pid);
    attend(watch);
    child_order(&child);
    const volatile pid_t *orphan = &shared->pids[1];
    if (at_order) {
        attend_until(watch, told.count == 3);
        assert_int_equal(seen_of(*orphan)->ppid, shared->pids[0]);
        kill(shared->pids[0], SIGKILL); /* an order could be taken by the other */
        attend_until(watch, seen_of(shared->pids[0])->ended);
    }
    attend_until(watch, *orphan && seen_of(*orphan)->joined);
    assert_true(seen_of(*orphan)->forked);
    kill(*orphan, SIGTERM);
    attend_until(watch, seen_of(*orphan)->ended);
    assert_int_equal(seen_of(*orphan)->exit_status, 128 + SIGTERM);
    assert_int_equal(waitpid(*orphan, NULL, 0), *orphan);
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

/* All live at once, until the go. */
static void fork_many(struct child_side *side)
{
    child_say_ready(side);
    child_await_order(side);
    for (int i = 0; i < MANY; i++) {
        if (fork_known((size_t)i) == 0) {
            while (!shared->go)
                sched_yield();
            _exit(i % 7);
        }
    }
    while (wait(NULL) > 0)
        ;
    child_await_order(side);
}

static void check_many(void)
{
    for (int i = 0; i < MANY; i++) {
        const struct seen *seen = seen_of(shared->pids[i]);
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
    shared->go = method_of(state) == FAMILY_EVENTS; /* each may end at once */
    child_order(&child);
    attend_until(watch, told.count == MANY + 1);
    shared->go = true;
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
    none.rlim_cur = (rlim_t)dup(0) + 3; /* enough for a file of /proc at a time */
    close((int)none.rlim_cur - 3);
    attend(watch);
    setrlimit(RLIMIT_NOFILE, &none);
    child_order(&child);
    attend_until(watch, told.count == MANY + 1);
    shared->go = true;
    attend_until(watch, told.ended == MANY);
    setrlimit(RLIMIT_NOFILE, &before);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(seen_of(shared->pids[i])->joined, 1);
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
    for (int i = 0; i < BURNERS; i++) {
        struct timespec used;
        if (fork_known((size_t)i) == 0) {
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
        assert_int_equal(seen_of(shared->pids[i])->joined, 1);
    for (size_t i = 0; i < SURVIVORS; i++)
        kill(shared->pids[i], SIGKILL);
    attend_until(watch, family_watch_count(watch) == 1);
}

#define WITH(name, test, method)                                                                   \
    {                                                                                              \
        name, test, set_up, NULL, (void *)&both[method]                                            \
    }
#define BOTH(test) WITH(#test " by events", test, 0), WITH(#test " by polling", test, 1)
#define EVENTS(test) WITH(#test " by events", test, 0)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_method),
        BOTH(test_fork),
        BOTH(test_present_descendants),
        BOTH(test_without_descendants),
        BOTH(test_several_roots),
        BOTH(test_what_is_no_process),
        BOTH(test_main_thread_ends_first),
        BOTH(test_exec_by_thread),
        BOTH(test_shell_chain),
        BOTH(test_orphan),
        BOTH(test_orphan_of_somebody_unseen),
        BOTH(test_many_children),
        BOTH(test_no_pidfds),
        EVENTS(test_cpu_of_short_lives),
        EVENTS(test_lost_news),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
