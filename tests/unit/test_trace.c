/* Pausing one thread: what it stood at, what it was before, no signal lost, nobody left behind
 * stopped. */
#define _GNU_SOURCE 1 /* sigqueue, epoll_pwait, gettid */

#include "child.h"
#include "sampler/target/trace.h"

#include <errno.h>

enum { SIGNALS = 10000 };

struct counters {
    atomic_ulong spins;
    atomic_ulong taken; /* signals the target's handler counted */
    atomic_long sum;    /* of what they carried */
    pid_t tid;
};

static struct counters *counters;

static int set_up(void **state)
{
    (void)state;
    counters = shared_zeroed(counters, sizeof *counters);
    return 0;
}

static void spin(struct child_side *side)
{
    child_say_ready(side);
    for (;;)
        counters->spins++;
}

static void pause_whole(pid_t tid, struct pause *ret)
{
    int result;
    while ((result = thread_pause(tid, ret)) == -EAGAIN) /* in a page fault */
        sched_yield();
    if (result)
        fail_msg("thread_pause of %d: %d", tid, result);
}

static void assert_spins_on(void)
{
    unsigned long before = counters->spins;
    await(counters->spins != before);
}

static void test_running_thread_stands_still(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(spin, NULL);
    child_await_ready(&child);
    assert_spins_on();

    struct pause pause;
    struct registers registers;
    pause_whole(child.pid, &pause);
    assert_int_equal(pause.tid, child.pid);
    assert_int_equal(thread_letter(child.pid), 't');
    unsigned long before = counters->spins;
    for (int i = 0; i < 1000; i++)
        sched_yield();
    assert_int_equal(counters->spins, before);

    assert_int_equal(thread_read_registers(&pause, &registers), 0);
    assert_in_range(registers.ip, (uintptr_t)spin, (uintptr_t)spin + 512);
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    assert_in_range(registers.sp, here - (1 << 20), here + (1 << 20));
    assert_true(registers.count == 17 || registers.count == 33);

    int64_t stood_ns = thread_resume(&pause);
    assert_in_range(stood_ns, 1, (int64_t)CHILD_SECONDS * 1000000000);
    assert_int_equal(pause.tid, 0);
    assert_spins_on();
    assert_int_equal(thread_resume(&pause), 0);
}

static void test_nobody_there(void **state)
{
    (void)state;
    struct child child = child_start(spin, NULL);
    pid_t pid = child.pid;
    kill(pid, SIGKILL);
    await(thread_letter(pid) == 'Z');
    struct pause pause = { 0 };
    assert_int_equal(thread_pause(pid, &pause), -ESRCH);
    child_wait(&child);
    assert_int_equal(thread_pause(pid, &pause), -ESRCH);
    assert_int_equal(pause.tid, 0);
}

static void test_stopped_stays_stopped(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(spin, NULL);
    child_await_ready(&child);
    kill(child.pid, SIGSTOP);
    await(thread_letter(child.pid) == 'T');
    unsigned long before = counters->spins;

    for (int i = 0; i < 100; i++) {
        struct pause pause;
        pause_whole(child.pid, &pause);
        assert_true(thread_resume(&pause) > 0);
        /* On its way back into the stop it is seen as 'R', but gets to nothing of its own. */
        await(thread_letter(child.pid) == 'T');
        assert_int_equal(counters->spins, before);
    }
    kill(child.pid, SIGCONT);
    assert_spins_on();
}

static void test_stopped_while_paused(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(spin, NULL);
    child_await_ready(&child);
    struct pause pause;

    pause_whole(child.pid, &pause);
    kill(child.pid, SIGSTOP);
    thread_resume(&pause);
    await(thread_letter(child.pid) == 'T');

    pause_whole(child.pid, &pause);
    kill(child.pid, SIGCONT);
    thread_resume(&pause);
    assert_spins_on();
}

static void count_signal(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    counters->sum += info->si_value.sival_int;
    counters->taken++;
}

static void take_signals(struct child_side *side)
{
    struct sigaction action = { .sa_sigaction = count_signal, .sa_flags = SA_SIGINFO };
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGRTMIN, &action, NULL);
    spin(side);
}

/* One after another, since the kernel merges equal standard signals that wait: each must arrive,
 * and once. */
static void send_in_turn(struct child_side *side)
{
    pid_t target = *(pid_t *)side->argument;
    child_say_ready(side);
    for (unsigned long i = 0; i < SIGNALS; i++) {
        kill(target, i & 1 ? SIGALRM : SIGUSR1);
        while (counters->taken == i)
            sched_yield();
    }
}

/* In crowds: the kernel queues real-time signals, with what they carry. */
static void send_in_crowds(struct child_side *side)
{
    pid_t target = *(pid_t *)side->argument;
    child_say_ready(side);
    for (int i = 1; i <= SIGNALS; i++)
        while (sigqueue(target, SIGRTMIN, (union sigval){ .sival_int = i }) < 0)
            sched_yield();
}

/* Returns how many of the pauses caught a signal on its way. */
static unsigned long pause_under_signals(void (*send)(struct child_side *side))
{
    AUTO_CHILD struct child target = child_start(take_signals, NULL);
    child_await_ready(&target);
    AUTO_CHILD struct child sender = child_start(send, &target.pid);
    child_await_ready(&sender);

    unsigned long caught = 0;
    uint64_t limit = seconds_now() + 2 * CHILD_SECONDS;
    while (counters->taken < SIGNALS && seconds_now() < limit) {
        struct pause pause;
        pause_whole(target.pid, &pause);
        caught += pause.signal != 0;
        assert_true(thread_resume(&pause) > 0);
    }
    assert_int_equal(child_wait(&sender), 0);
    assert_spins_on();
    assert_int_equal(counters->taken, SIGNALS);
    return caught;
}

static void test_signals_in_turn(void **state)
{
    (void)state;
    pause_under_signals(send_in_turn);
    assert_int_equal(counters->sum, 0);
}

static void test_signals_in_crowds(void **state)
{
    (void)state;
    pause_under_signals(send_in_crowds);
    assert_int_equal(counters->sum, (long)SIGNALS * (SIGNALS + 1) / 2);
}

static void *thread_end(void *argument)
{
    counters->spins++;
    return argument;
}

static void churn_threads(struct child_side *side)
{
    child_say_ready(side);
    for (int i = 0; i < 3000; i++) {
        pthread_t threads[3];
        for (int k = 0; k < 3; k++)
            if (pthread_create(&threads[k], NULL, thread_end, NULL))
                _exit(91);
        for (int k = 0; k < 3; k++)
            pthread_join(threads[k], NULL);
    }
    _exit(7);
}

static void test_threads_that_end(void **state)
{
    (void)state;
    struct child child = child_start(churn_threads, NULL);
    child_await_ready(&child);
    AUTO_PROCESS struct process *process = open_child(&child);
    unsigned long paused = 0;
    for (int count;;) {
        AUTO_FREE struct os_thread *threads = NULL;
        count = threads_list(process, &threads);
        if (count < 0 || thread_letter(child.pid) == 'Z')
            break;
        for (int i = 0; i < count; i++) {
            struct pause pause;
            int result = thread_pause(threads[i].tid, &pause);
            if (result == -ESRCH || result == -EAGAIN)
                continue;
            assert_int_equal(result, 0);
            thread_resume(&pause);
            paused++;
        }
    }
    int status = child_wait(&child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_true(paused > 0);
    assert_int_equal(counters->spins, 9000);
}

static void *thread_spin(void *argument)
{
    counters->tid = gettid();
    child_say_ready(argument);
    for (;;)
        counters->spins++;
    return argument;
}

static void spin_aside(struct child_side *side)
{
    pthread_t thread;
    pthread_create(&thread, NULL, thread_spin, side);
    child_await_order(side);
    dup2(side->orders, STDIN_FILENO);
    execl("/bin/cat", "cat", NULL);
}

static void test_killed_while_paused(void **state)
{
    (void)state;
    for (int leader = 0; leader < 2; leader++) {
        struct child child = child_start(spin_aside, NULL);
        child_await_ready(&child);
        struct pause pause;
        pause_whole(leader ? child.pid : counters->tid, &pause);
        kill(child.pid, SIGKILL);
        int64_t stood_ns = thread_resume(&pause);
        assert_true(stood_ns > 0 || stood_ns == -ESRCH);
        /* Its end is for the parent, which is this test, and nothing of us delays it. */
        int status = child_wait(&child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGKILL);
    }
}

/* An exec ends all other threads first, and waits for a traced one to be let go. */
static void test_exec_while_paused(void **state)
{
    (void)state;
    for (int leader = 0; leader < 2; leader++) {
        AUTO_CHILD struct child child = child_start(spin_aside, NULL);
        child_await_ready(&child);
        struct pause pause;
        pause_whole(leader ? child.pid : counters->tid, &pause);
        child_order(&child);
        int64_t stood_ns = thread_resume(&pause);
        assert_true(stood_ns > 0 || stood_ns == -ESRCH);
        await(thread_letter(counters->tid) == 'X');
        pause_whole(child.pid, &pause);
        assert_true(thread_resume(&pause) > 0);
    }
}

static void *thread_outlive(void *argument)
{
    for (;;)
        counters->spins++;
    return argument;
}

static void leave_by_main_thread(struct child_side *side)
{
    pthread_t thread;
    pthread_create(&thread, NULL, thread_outlive, NULL);
    child_say_ready(side);
    pthread_exit(NULL);
}

static void test_main_thread_ends_before_others(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        AUTO_CHILD struct child child = child_start(leave_by_main_thread, NULL);
        child_await_ready(&child);
        struct pause pause;
        int result;
        while (!(result = thread_pause(child.pid, &pause)) || result == -EAGAIN)
            if (!result)
                thread_resume(&pause);
        assert_int_equal(result, -ESRCH);
    }
}

static void pause_and_hang(struct child_side *side)
{
    struct pause pause;
    if (thread_pause(*(pid_t *)side->argument, &pause))
        _exit(92);
    child_say_ready(side);
    child_await_order(side);
}

static void test_tracer_killed_while_it_holds(void **state)
{
    (void)state;
    AUTO_CHILD struct child target = child_start(spin, NULL);
    child_await_ready(&target);
    AUTO_CHILD struct child tracer = child_start(pause_and_hang, &target.pid);
    child_await_ready(&tracer);
    assert_int_equal(thread_letter(target.pid), 't');
    unsigned long before = counters->spins;
    child_kill(&tracer);
    await(counters->spins != before);
}

static void test_another_tracer(void **state)
{
    (void)state;
    AUTO_CHILD struct child target = child_start(spin, NULL);
    child_await_ready(&target);
    AUTO_CHILD struct child tracer = child_start(pause_and_hang, &target.pid);
    child_await_ready(&tracer);
    struct pause pause;
    assert_int_equal(thread_pause(target.pid, &pause), -EPERM);
    child_kill(&tracer);
    await(thread_letter(target.pid) == 'R');
    pause_whole(target.pid, &pause);
    thread_resume(&pause);
    assert_spins_on();
}

/* A pause must not be taken for a child of ours that ends, nor take its news. */
static void test_own_children_are_left_alone(void **state)
{
    (void)state;
    AUTO_CHILD struct child target = child_start(spin, NULL);
    child_await_ready(&target);
    pid_t other = fork();
    if (!other)
        _exit(3);
    await(thread_letter(other) == 'Z');
    struct pause pause;
    pause_whole(target.pid, &pause);
    thread_resume(&pause);
    int status;
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_int_equal(WEXITSTATUS(status), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_running_thread_stands_still, set_up),
        cmocka_unit_test_setup(test_nobody_there, set_up),
        cmocka_unit_test_setup(test_stopped_stays_stopped, set_up),
        cmocka_unit_test_setup(test_stopped_while_paused, set_up),
        cmocka_unit_test_setup(test_signals_in_turn, set_up),
        cmocka_unit_test_setup(test_signals_in_crowds, set_up),
        cmocka_unit_test_setup(test_threads_that_end, set_up),
        cmocka_unit_test_setup(test_killed_while_paused, set_up),
        cmocka_unit_test_setup(test_exec_while_paused, set_up),
        cmocka_unit_test_setup(test_main_thread_ends_before_others, set_up),
        cmocka_unit_test_setup(test_tracer_killed_while_it_holds, set_up),
        cmocka_unit_test_setup(test_another_tracer, set_up),
        cmocka_unit_test_setup(test_own_children_are_left_alone, set_up),
    };
    return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
