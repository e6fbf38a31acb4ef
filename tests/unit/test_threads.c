/* What a thread waits for, seen from outside; what /proc's texts may say. */
#define _GNU_SOURCE 1 /* gettid, memfd_create, unshare */

#include "child.h"
#include "sampler/target/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

enum { LONG_S = 2 * CHILD_SECONDS };

struct board {
    atomic_ulong spins;
    atomic_int word;
};

static struct board *board;

static int set_up(void **state)
{
    (void)state;
    board = shared_zeroed(board, sizeof *board);
    return 0;
}

static int pipe_end(void)
{
    int ends[2];
    return pipe(ends) ? -1 : ends[0];
}

static int socket_end(void)
{
    int pair[2];
    return socketpair(AF_UNIX, SOCK_STREAM, 0, pair) ? -1 : pair[0];
}

static void wait_in_futex(void)
{
    syscall(SYS_futex, &board->word, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static void wait_in_futex_timed(void)
{
    syscall(SYS_futex, &board->word, FUTEX_WAIT, 0, &(struct timespec){ LONG_S, 0 }, NULL, 0);
}

static void wait_in_read(void)
{
    char byte;
    (void)!read(pipe_end(), &byte, 1);
}

static void wait_in_write(void)
{
    char block[4096] = { 0 };
    int end = socket_end();
    while (write(end, block, sizeof block) > 0)
        continue;
}

static void wait_in_receive(void)
{
    char byte;
    recv(socket_end(), &byte, 1, 0);
}

static void wait_in_accept(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    bind(fd, (struct sockaddr *)&name, sizeof name.sun_family); /* the kernel finds a free name */
    listen(fd, 1);
    accept(fd, NULL, NULL);
}

static void wait_in_poll(void)
{
    poll(&(struct pollfd){ pipe_end(), POLLIN, 0 }, 1, LONG_S * 1000);
}

static void wait_in_poll_of_nothing(void)
{
    poll(NULL, 0, LONG_S * 1000);
}

static void wait_in_select(void)
{
    fd_set set;
    int fd = pipe_end();
    FD_ZERO(&set);
    FD_SET(fd, &set);
    select(fd + 1, &set, NULL, NULL, NULL);
}

static void wait_in_select_of_nothing(void)
{
    select(0, NULL, NULL, NULL, &(struct timeval){ LONG_S, 0 });
}

static void wait_in_epoll(void)
{
    struct epoll_event event;
    epoll_wait(epoll_create1(0), &event, 1, -1);
}

static void wait_in_sleep(void)
{
    clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ LONG_S, 0 }, NULL);
}

static void wait_for_child(void)
{
    pid_t self = getpid(), pid = fork();
    if (!pid) {
        end_with_parent(self);
        for (;;)
            pause();
    }
    waitpid(pid, NULL, 0);
}

static void wait_for_signal(void)
{
    pause();
}

static const struct wait_case {
    const char *name;
    void (*run)(void);
    enum thread_state state;
} wait_cases[] = {
    { "futex", wait_in_futex, THREAD_WAIT_LOCK },
    { "futex with a limit", wait_in_futex_timed, THREAD_WAIT_LOCK },
    { "read", wait_in_read, THREAD_WAIT_IO },
    { "write", wait_in_write, THREAD_WAIT_IO },
    { "recv", wait_in_receive, THREAD_WAIT_IO },
    { "accept", wait_in_accept, THREAD_WAIT_IO },
    { "poll", wait_in_poll, THREAD_WAIT_IO },
    { "poll of nothing", wait_in_poll_of_nothing, THREAD_WAIT_SLEEP },
    { "select", wait_in_select, THREAD_WAIT_IO },
    { "select of nothing", wait_in_select_of_nothing, THREAD_WAIT_SLEEP },
    { "epoll_wait", wait_in_epoll, THREAD_WAIT_IO },
    { "clock_nanosleep", wait_in_sleep, THREAD_WAIT_SLEEP },
    { "waitpid", wait_for_child, THREAD_WAIT_CHILD },
    { "pause", wait_for_signal, THREAD_WAIT_OTHER },
};

static void run_wait(struct child_side *side)
{
    child_say_ready(side);
    ((const struct wait_case *)side->argument)->run();
    _exit(96);
}

/* Off the CPU for good: looked at twice, it did not get one in between. Runs on to that point by
 * itself. */
static bool has_settled(const struct process *process, struct wait_state *ret)
{
    struct wait_state before;
    assert_int_equal(thread_read_wait(process, process->pid, &before), 0);
    assert_int_equal(thread_read_wait(process, process->pid, ret), 0);
    return ret->off_cpu && before.off_cpu && ret->turns == before.turns;
}

static void check_wait(const struct wait_case *wait_case)
{
    AUTO_CHILD struct child child = child_start(run_wait, (void *)wait_case);
    child_await_ready(&child);
    AUTO_PROCESS struct process *process = open_child(&child);
    struct wait_state wait = { 0 };
    uint64_t limit = seconds_now() + CHILD_SECONDS;
    while (!(has_settled(process, &wait) && wait.state == wait_case->state))
        if (seconds_now() > limit)
            fail_msg("%s is seen as %s", wait_case->name, thread_state_name(wait.state));
    bool locked = wait.state == THREAD_WAIT_LOCK;
    assert_int_equal(wait.futex, locked ? (uintptr_t)&board->word : 0);
    assert_true(wait.sp && wait.ip);

    struct pause pause;
    struct registers registers;
    assert_int_equal(thread_pause(child.pid, &pause), 0);
    assert_int_equal(thread_read_registers(&pause, &registers), 0);
    thread_resume(&pause);
    assert_int_equal(registers.sp, wait.sp);
    assert_int_equal(registers.ip, wait.ip);
}

static void test_waits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wait_cases / sizeof *wait_cases; i++)
        check_wait(&wait_cases[i]);
}

static bool kernel_tells_where_it_sleeps(pid_t pid)
{
    char path[64], function[64] = "";
    snprintf(path, sizeof path, "/proc/%d/wchan", pid);
    AUTO_FCLOSE FILE *file = fopen(path, "re");
    return file && fread(function, 1, sizeof function - 1, file) > 1;
}

/* After a pause these go on as "restart_syscall", and still are what they were. */
static void test_waits_after_a_pause(void **state)
{
    (void)state;
    static const struct wait_case resumed[] = {
        { "clock_nanosleep", wait_in_sleep, THREAD_WAIT_SLEEP },
        { "futex with a limit", wait_in_futex_timed, THREAD_WAIT_LOCK },
        { "poll", wait_in_poll, THREAD_WAIT_IO },
        { "poll of nothing", wait_in_poll_of_nothing, THREAD_WAIT_SLEEP },
    };
    for (size_t i = 0; i < sizeof resumed / sizeof *resumed; i++) {
        AUTO_CHILD struct child child = child_start(run_wait, (void *)&resumed[i]);
        child_await_ready(&child);
        AUTO_PROCESS struct process *process = open_child(&child);
        struct wait_state wait;
        await(has_settled(process, &wait) && wait.state == resumed[i].state);
        if (!kernel_tells_where_it_sleeps(child.pid))
            SKIP("this kernel's /proc/PID/wchan is empty");
        struct pause pause;
        assert_int_equal(thread_pause(child.pid, &pause), 0);
        uint64_t turns = wait.turns;
        thread_resume(&pause);
        await(has_settled(process, &wait) && wait.turns > turns);
        if (wait.state != resumed[i].state)
            fail_msg("%s resumed is seen as %s", resumed[i].name, thread_state_name(wait.state));
        assert_int_equal(wait.futex, wait.state == THREAD_WAIT_LOCK ? (uintptr_t)&board->word : 0);
    }
}

static void spin(struct child_side *side)
{
    child_say_ready(side);
    for (;;)
        board->spins++;
}

static void test_running_and_stopped(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(spin, NULL);
    child_await_ready(&child);
    AUTO_PROCESS struct process *process = open_child(&child);
    struct thread_probe probe;
    struct wait_state first, later;
    assert_int_equal(thread_probe_open(process, child.pid, &probe), 0);
    assert_int_equal(thread_probe_read(&probe, &first), 0);
    await(!thread_probe_read(&probe, &later) && later.run_ns > first.run_ns);
    assert_int_equal(later.state, THREAD_RUNNING);
    assert_false(later.off_cpu);
    assert_true(later.turns >= first.turns && later.queued_ns >= first.queued_ns);

    kill(child.pid, SIGSTOP);
    await(thread_letter(child.pid) == 'T');
    assert_int_equal(thread_probe_read(&probe, &first), 0);
    assert_int_equal(first.state, THREAD_STOPPED);
    assert_true(first.off_cpu);
    assert_int_equal(thread_probe_read(&probe, &later), 0);
    assert_int_equal(later.run_ns, first.run_ns);
    assert_int_equal(later.turns, first.turns);

    child_kill(&child);
    assert_int_equal(thread_probe_read(&probe, &later), -ESRCH);
    thread_probe_close(&probe);
    thread_probe_close(&probe);
}

/* A stop catches a thread in its call, and that is not what it waits for then. */
static void test_stopped_in_a_call(void **state)
{
    (void)state;
    static const struct wait_case reading = { "read", wait_in_read, THREAD_WAIT_IO };
    AUTO_CHILD struct child child = child_start(run_wait, (void *)&reading);
    child_await_ready(&child);
    AUTO_PROCESS struct process *process = open_child(&child);
    await(wait_of(process, child.pid) == THREAD_WAIT_IO);
    kill(child.pid, SIGSTOP);
    await(wait_of(process, child.pid) == THREAD_STOPPED);
    kill(child.pid, SIGCONT);
    await(wait_of(process, child.pid) == THREAD_WAIT_IO);
}

/* A process made of plain files, to say what no machine at hand does: a GPU's device, broken texts.
 */
static int paper_file(const char *text)
{
    int fd = memfd_create("paper", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    return fd;
}

static int paper_read(const char *call, const char *link, struct wait_state *ret)
{
    char folder[] = "/tmp/threads-XXXXXX", fd_folder[32], path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(fd_folder, sizeof fd_folder, "%s/fd", folder);
    assert_int_equal(mkdir(fd_folder, 0700), 0);
    snprintf(path, sizeof path, "%s/3", fd_folder);
    if (link)
        assert_int_equal(symlink(link, path), 0);

    struct process process = { .proc_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
    struct thread_probe probe = { .process = &process,
                                  .tid = 1,
                                  .call_fd = paper_file(call),
                                  .account_fd = paper_file("12 34 56\n"),
                                  .stat_fd = -1 };
    int result = thread_probe_read(&probe, ret);
    thread_probe_close(&probe);
    close(process.proc_fd);
    unlink(path);
    rmdir(fd_folder);
    rmdir(folder);
    return result;
}

static void test_devices(void **state)
{
    (void)state;
    static const struct {
        const char *link;
        enum thread_state state;
    } rows[] = {
        { "/dev/nvidia0", THREAD_WAIT_GPU },        { "/dev/nvidia-uvm", THREAD_WAIT_GPU },
        { "/dev/neuron3", THREAD_WAIT_GPU },        { "/dev/kfd", THREAD_WAIT_GPU },
        { "/dev/dri/renderD128", THREAD_WAIT_GPU }, { "/dev/tty", THREAD_WAIT_IO },
        { "socket:[7]", THREAD_WAIT_IO },           { NULL, THREAD_WAIT_IO },
    };
    char call[128];
    snprintf(call, sizeof call, "%d 0x3 0x1 0x2 0x0 0x0 0x0 0x7ffc0 0x4010\n", SYS_ioctl);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct wait_state wait;
        assert_int_equal(paper_read(call, rows[i].link, &wait), 0);
        assert_int_equal(wait.state, rows[i].state);
        assert_int_equal(wait.sp, 0x7ffc0);
        assert_int_equal(wait.ip, 0x4010);
        assert_int_equal(wait.run_ns, 12);
        assert_int_equal(wait.queued_ns, 34);
        assert_int_equal(wait.turns, 56);
    }
}

static void test_texts(void **state)
{
    (void)state;
    struct wait_state wait;
    assert_int_equal(paper_read("running\n", NULL, &wait), 0);
    assert_int_equal(wait.state, THREAD_RUNNING);
    assert_int_equal(paper_read("-1 0x7ffc0 0x4010\n", NULL, &wait), 0);
    assert_int_equal(wait.state, THREAD_WAIT_OTHER);
    assert_int_equal(wait.sp, 0x7ffc0);
    assert_int_equal(paper_read("99999 0 0 0 0 0 0 0x1 0x2\n", NULL, &wait), 0);
    assert_int_equal(wait.state, THREAD_WAIT_OTHER);

    static const char *const broken[] = {
        "", "\n", "x", "7", "7 0x1 0x2", "-1", "-1 0x1", "7 0x1 0x2 0x3 0x4 0x5 0x6 0x7"
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        assert_int_equal(paper_read(broken[i], NULL, &wait), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_waits, set_up),
        cmocka_unit_test_setup(test_waits_after_a_pause, set_up),
        cmocka_unit_test_setup(test_running_and_stopped, set_up),
        cmocka_unit_test_setup(test_stopped_in_a_call, set_up),
        cmocka_unit_test_setup(test_devices, set_up),
        cmocka_unit_test_setup(test_texts, set_up),
    };
    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
