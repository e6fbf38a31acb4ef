/* A process's identity, its command line and its family. */
#define _GNU_SOURCE 1 /* gettid */

#include "child.h"
#include "sampler/target/proc_file.h"

#include <errno.h>
#include <sys/syscall.h>

/* What is shared between a test and its children. */
struct board {
    pid_t pids[4];
};

static struct board *board;

static int set_up(void **state)
{
    (void)state;
    board = shared_zeroed(board, sizeof *board);
    return 0;
}

static void test_identity(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(rest, NULL);
    child_await_ready(&child);
    AUTO_PROCESS struct process *process = open_child(&child);
    assert_int_equal(process->pid, child.pid);
    assert_int_equal(process->inner_pid, child.pid);
    assert_false(process->other_namespace);
    assert_true(process->start_time > 0);
    assert_true(process->stack_start > 0);
    assert_int_equal(process_check(process), 0);
    child_kill(&child);
    assert_int_equal(process_check(process), -ESRCH);
}

static void rest_under_a_strange_name(struct child_side *side)
{
    prctl(PR_SET_NAME, ") (Z) R 1 2 (");
    rest(side);
}

static void test_strange_name(void **state)
{
    (void)state;
    AUTO_CHILD struct child plain = child_start(rest, NULL);
    AUTO_CHILD struct child child = child_start(rest_under_a_strange_name, NULL);
    child_await_ready(&plain);
    child_await_ready(&child);
    AUTO_PROCESS struct process *process = open_child(&child);
    AUTO_PROCESS struct process *reference = open_child(&plain);
    assert_in_range(process->start_time, reference->start_time,
                    reference->start_time + (uint64_t)(CHILD_SECONDS * sysconf(_SC_CLK_TCK)));
}

static void test_stat_text(void **state)
{
    (void)state;
    static const char *const broken[] = {
        "", "12", "12 (x", "12 (x)", "12 (x) ", "12 (x) R 1 2 3", "12 (x) R 1 2 3 x y z",
    };
    struct proc_stat stat;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        assert_int_equal(proc_parse_stat(broken[i], &stat), -EBADMSG);

    assert_int_equal(
        proc_parse_stat(
            "7 (a) b (c) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 "
            "22 23 24 18446744073709551615 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40\n",
            &stat),
        0);
    assert_int_equal(stat.state, 'S');
    assert_int_equal(stat.parent, 4);
    assert_int_equal(stat.flags, 9);
    assert_int_equal(stat.threads, 20);
    assert_int_equal(stat.start_time, 22);
    assert_int_equal(stat.stack_start, 28);
    assert_int_equal(stat.core, 39);
}

static void test_status_text(void **state)
{
    (void)state;
    const char *status = "Name:\tx\nTgid:\t 12\nNSpid:\t900\t12\t1\nCapPrm:\t00000000a80425fb\n";
    pid_t inner = 0;
    assert_int_equal(proc_find_inner_pid(status, &inner), 3);
    assert_int_equal(inner, 1);
    assert_int_equal(proc_find_number(status, "Tgid", 10), 12);
    assert_int_equal(proc_find_number(status, "CapPrm", 16), 0xa80425fb);
    assert_int_equal(proc_find_number(status, "Tracer", 10), 0);
    assert_null(proc_find_field(status, "Nam"));
    assert_int_equal(proc_find_inner_pid("NSpid:\tnone\n", &inner), 0);
    assert_int_equal(proc_parse_id("17"), 17);
    assert_int_equal(proc_parse_id("17x"), -1);
    assert_int_equal(proc_parse_id("-17"), -1);
    assert_int_equal(proc_parse_id("self"), -1);
    assert_int_equal(proc_parse_id("99999999999"), -1);
}

static void assert_not_opened(pid_t pid, int code, const char *sentence)
{
    struct process *process = NULL;
    struct failure why = { 0 };
    assert_int_equal(process_open(pid, &process, &why), code);
    assert_null(process);
    assert_int_equal(why.code, code);
    if (!strstr(why.text, sentence))
        fail_msg("\"%s\" does not say \"%s\"", why.text, sentence);
    assert_int_equal(process_open(pid, &process, NULL), code);
}

static void test_no_such_process(void **state)
{
    (void)state;
    struct child child = child_start(rest, NULL);
    pid_t pid = child.pid;
    kill(pid, SIGKILL);
    await(thread_letter(pid) == 'Z');
    assert_not_opened(pid, -ESRCH, "has ended and only waits");
    child_wait(&child);
    assert_not_opened(pid, -ESRCH, "there is no process");
    assert_not_opened(0, -ESRCH, "0 is not a process's number");
    assert_not_opened(-5, -ESRCH, "-5 is not a process's number");
}

static void *thread_rest(void *side)
{
    board->pids[0] = gettid();
    rest(side);
    return NULL;
}

static void rest_in_a_thread(struct child_side *side)
{
    pthread_t thread;
    pthread_create(&thread, NULL, thread_rest, side);
    if (side->argument)
        syscall(SYS_exit, 0); /* of this thread alone, and no sanitizer has a part in it */
    pthread_join(thread, NULL);
}

static void test_number_of_a_thread(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(rest_in_a_thread, NULL);
    child_await_ready(&child);
    char sentence[64];
    snprintf(sentence, sizeof sentence, "is a thread of process %d", child.pid);
    assert_not_opened(board->pids[0], -ESRCH, sentence);
}

static void test_main_thread_has_ended(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(rest_in_a_thread, board);
    child_await_ready(&child);
    await(thread_letter(child.pid) == 'Z');
    assert_not_opened(child.pid, -ESRCH, "the main thread of process");
}

static void test_kernel_thread(void **state)
{
    (void)state;
    struct proc_stat stat;
    if (proc_read_stat(-1, "/proc/2/stat", &stat) || !(stat.flags & 0x00200000))
        SKIP("no kernel threads to be seen in this PID namespace");
    assert_not_opened(2, -EPERM, "thread of the kernel");
}

static void exec_on_order(struct child_side *side)
{
    rest(side);
    dup2(side->orders, STDIN_FILENO);
    execl("/bin/cat", "cat", "-", "a\nb\033[31m\tc", "", NULL);
}

static char command[64];

static const char *command_of(pid_t pid)
{
    assert_true(process_read_command(pid, command, sizeof command) > 0);
    return command;
}

static void test_exec(void **state)
{
    (void)state;
    void *page = shared_new(1);
    AUTO_CHILD struct child child = child_start(exec_on_order, NULL);
    child_await_ready(&child);
    AUTO_PROCESS struct process *process = open_child(&child);
    char byte, text[8];
    assert_int_equal(remote_read(&process->memory, (uintptr_t)page, &byte, 1), 0);
    child_order(&child);
    await(!strncmp(command_of(child.pid), "cat ", 4));
    assert_string_equal(command, "cat - a?b?[31m?c");
    assert_int_equal(process_read_command(child.pid, text, sizeof text), 7);
    assert_string_equal(text, "cat - a");

    assert_int_equal(process_check(process), -ESRCH);
    assert_int_equal(remote_read(&process->memory, (uintptr_t)page, &byte, 1), -ESRCH);
    AUTO_PROCESS struct process *again = open_child(&child);
    assert_int_equal(process_check(again), 0);
}

static void test_command_of_a_zombie(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(rest_under_a_strange_name, NULL);
    child_await_ready(&child);
    kill(child.pid, SIGKILL);
    await(thread_letter(child.pid) == 'Z');
    assert_string_equal(command_of(child.pid), "[) (Z) R 1 2 (]");
    pid_t pid = child.pid;
    child_kill(&child);
    assert_int_equal(process_read_command(pid, command, sizeof command), -ESRCH);
}

static pid_t family_fork(int place)
{
    pid_t self = getpid(), pid = fork();
    if (pid)
        return pid;
    end_with_parent(self);
    board->pids[place] = getpid();
    return 0;
}

static void *thread_fork(void *side)
{
    if (!family_fork(1)) {
        if (!family_fork(3))
            child_say_ready(side);
        for (;;)
            pause();
    }
    for (;;)
        pause();
    return NULL;
}

static void found_a_family(struct child_side *side)
{
    pthread_t thread;
    if (!family_fork(0)) {
        if (!family_fork(2))
            child_say_ready(side);
        for (;;)
            pause();
    }
    child_await_order(side);
    pthread_create(&thread, NULL, thread_fork, side);
    pthread_join(thread, NULL);
}

/* Our own: one word, and what does not fit is told. */
static void test_arguments(void **state)
{
    (void)state;
    char text[512];
    const char *argv[3];
    assert_true(process_read_arguments(getpid(), text, sizeof text, argv, 2));
    assert_non_null(strstr(argv[0], "process"));
    assert_null(argv[1]);
    assert_false(process_read_arguments(getpid(), text, 4, argv, 2));
    assert_int_equal(strlen(argv[0]), 3);
    assert_false(process_read_arguments(getpid(), text, sizeof text, argv, 0));
    assert_null(argv[0]);
}

static void test_descendants(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(found_a_family, NULL);
    child_await_ready(&child);
    child_order(&child);
    child_await_ready(&child);
    AUTO_FREE pid_t *found = NULL;
    assert_int_equal(process_list_descendants(child.pid, &found), 4);
    assert_memory_equal(found, board->pids, sizeof board->pids);
    assert_true(process_descends(board->pids[3], child.pid));
    assert_true(process_descends(board->pids[3], getpid()));
    assert_false(process_descends(board->pids[3], board->pids[2]));
    assert_false(process_descends(child.pid, child.pid));

    AUTO_FREE pid_t *none = NULL;
    assert_int_equal(process_list_descendants(board->pids[3], &none), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_identity, set_up),
        cmocka_unit_test_setup(test_strange_name, set_up),
        cmocka_unit_test_setup(test_stat_text, set_up),
        cmocka_unit_test_setup(test_status_text, set_up),
        cmocka_unit_test_setup(test_no_such_process, set_up),
        cmocka_unit_test_setup(test_number_of_a_thread, set_up),
        cmocka_unit_test_setup(test_main_thread_has_ended, set_up),
        cmocka_unit_test_setup(test_kernel_thread, set_up),
        cmocka_unit_test_setup(test_exec, set_up),
        cmocka_unit_test_setup(test_command_of_a_zombie, set_up),
        cmocka_unit_test_setup(test_arguments, set_up),
        cmocka_unit_test_setup(test_descendants, set_up),
    };
    return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
