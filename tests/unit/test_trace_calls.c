/* Which system calls a program sees fail because it was paused in them. */

#include "child.h"
#include "sampler/target/trace.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* What the target tells: whether its call came back, and how. */
static struct call_record {
    atomic_long error;
    atomic_int done;
} * record;

static int pipe_end(void)
{
    int ends[2];
    return pipe(ends) ? -1 : ends[0];
}

static long call_read(void)
{
    char byte;
    return read(pipe_end(), &byte, 1);
}

static long call_poll(void)
{
    struct pollfd one = { pipe_end(), POLLIN, 0 };
    return poll(&one, 1, -1);
}

static long call_poll_timed(void)
{
    struct pollfd one = { pipe_end(), POLLIN, 0 };
    return poll(&one, 1, 1000 * 2 * CHILD_SECONDS);
}

static long call_select(void)
{
    return select(0, NULL, NULL, NULL, &(struct timeval){ 2 * CHILD_SECONDS, 0 });
}

static long call_epoll(void)
{
    struct epoll_event event;
    return epoll_wait(epoll_create1(0), &event, 1, -1);
}

static long call_nanosleep(void)
{
    return nanosleep(&(struct timespec){ 2 * CHILD_SECONDS, 0 }, NULL);
}

static long call_futex(void)
{
    static int word;
    return syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static long call_futex_timed(void)
{
    static int word;
    struct timespec limit = { 2 * CHILD_SECONDS, 0 };
    return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &limit, NULL, 0);
}

static long call_receive(void)
{
    int pair[2];
    char byte;
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    return recv(pair[0], &byte, 1, 0);
}

static long call_receive_timed(void)
{
    int pair[2];
    char byte;
    struct timeval limit = { 2 * CHILD_SECONDS, 0 };
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return recv(pair[0], &byte, 1, 0);
}

static long call_wait(void)
{
    pid_t self = getpid(), own = fork();
    if (!own) {
        end_with_parent(self);
        for (;;)
            pause();
    }
    return waitpid(own, NULL, 0);
}

static long call_sigsuspend(void)
{
    return pause();
}

static long call_sigwait(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    return sigtimedwait(&set, NULL, &(struct timespec){ 2 * CHILD_SECONDS, 0 });
}

static long call_semop(void)
{
    int set = semget(IPC_PRIVATE, 1, 0600);
    /* Marked for removal would end the wait, so the test's end removes it: IPC_RMID follows EINTR
     * alone. */
    long result = semop(set, &(struct sembuf){ 0, -1, 0 }, 1);
    int error = errno;
    semctl(set, 0, IPC_RMID);
    errno = error;
    return result;
}

static const struct call {
    const char *name;
    long (*run)(void);
    int error; /* what the program sees when it is paused in it; 0: nothing, the kernel resumes the
                  call */
} calls[] = {
    { "read", call_read, 0 },
    { "poll", call_poll, 0 },
    { "poll with a limit", call_poll_timed, 0 },
    { "select with a limit", call_select, 0 },
    { "epoll_wait", call_epoll, EINTR },
    { "nanosleep", call_nanosleep, 0 },
    { "futex", call_futex, 0 },
    { "futex with a limit", call_futex_timed, 0 },
    { "recv", call_receive, 0 },
    { "recv with a limit", call_receive_timed, EINTR },
    { "waitpid", call_wait, 0 },
    { "pause", call_sigsuspend, 0 },
    { "sigtimedwait", call_sigwait, EINTR },
    { "semop", call_semop, EINTR },
};

static void make_call(struct child_side *side)
{
    const struct call *call = side->argument;
    child_say_ready(side);
    record->error = call->run() < 0 ? errno : -1;
    record->done = 1;
    child_await_order(side);
}

static uint64_t turns_of(const struct process *process)
{
    struct wait_state wait;
    assert_int_equal(thread_read_wait(process, process->pid, &wait), 0);
    return wait.off_cpu && wait.state != THREAD_STOPPED ? wait.turns : 0;
}

/* Which calls a pause makes fail with EINTR, as a stop and SIGCONT would: signal(7). */
static void test_interrupted_calls(void **state)
{
    (void)state;
    record = shared_new(sizeof *record);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        record->done = 0;
        record->error = 0;
        AUTO_CHILD struct child child = child_start(make_call, (void *)&calls[i]);
        child_await_ready(&child);
        AUTO_PROCESS struct process *process = open_child(&child);
        uint64_t before = 0;
        await((before = turns_of(process)) && wait_of(process, child.pid) != THREAD_RUNNING);

        struct pause pause;
        assert_int_equal(thread_pause(child.pid, &pause), 0);
        thread_resume(&pause);
        await(record->done || turns_of(process) > before);
        if (calls[i].error)
            await(record->done);
        if (record->error != calls[i].error)
            fail_msg("%s: the program saw error %ld, not %d", calls[i].name, record->error,
                     calls[i].error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interrupted_calls),
    };
    return cmocka_run_group_tests_name("trace_calls", tests, NULL, NULL);
}
