/* What a profile notes of a process that is no Python. */
#define _GNU_SOURCE 1 /* pipe2 */
#include "sampler/app/member.h"

#include "sampler/base/cleanup.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Returns when it is another program. */
static pid_t cat_start(int *ret_input)
{
    int input[2], started[2];
    char byte;
    assert_int_equal(pipe(input), 0);
    assert_int_equal(pipe2(started, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(input[0], STDIN_FILENO);
        close(input[1]);
        execlp("cat", "cat", (char *)NULL);
        _exit(127);
    }
    close(input[0]);
    close(started[1]);
    assert_int_equal(read(started[0], &byte, 1), 0);
    close(started[0]);
    *ret_input = input[1];
    return pid;
}

/* It is looked at while it lives, is said to have become another program, and is gone when it is
 * looked at again. */
static const char *note_after_exec(bool same)
{
    static struct member member;
    const struct stack_options options = { .nonblocking = true };
    struct failure why = { 0 };
    AUTO_SOURCES struct sources *sources = NULL;
    int input, error = -EAGAIN;
    assert_int_equal(sources_new(&sources), 0);
    member = (struct member){ .pid = cat_start(&input), .born = true };
    member_begin(&member, 0, 1);
    for (uint64_t look = 1; error == -EAGAIN; look++) /* while the loader is at work */
        error = member_open(&member, &options, sources, look, &why);
    assert_int_equal(error, -ENOENT);
    assert_string_equal(member_note(&member), "not a Python");
    close(input);
    assert_int_equal(waitpid(member.pid, NULL, 0), member.pid);
    assert_true(member.stack_start);
    member_begin(&member, member.stack_start + (same ? 0 : 16), 2);
    assert_int_equal(member_open(&member, &options, sources, 2, &why), -ESRCH);
    return member_note(&member);
}

static void test_exec_is_heard_of_late(void **state)
{
    (void)state;
    assert_string_equal(note_after_exec(true), "not a Python");
}

static void test_exec_of_a_program_nobody_saw(void **state)
{
    (void)state;
    assert_string_equal(note_after_exec(false), "ended before it could be looked into");
}

/* A child of fork that was gone when it was heard of had its parent's words, as whoever was seen
 * has its own. */
static void test_words_of_a_fork(void **state)
{
    static struct member parent, child, seen;
    (void)state;
    parent.pid = seen.pid = getpid();
    child.pid = fork();
    if (child.pid == 0)
        _exit(0);
    assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
    member_begin(&parent, 0, 1);
    member_begin(&child, 0, 1);
    assert_non_null(parent.argv[0]);
    assert_null(child.argv[0]);
    member_inherit(&child, &parent);
    assert_string_equal(child.argv[0], parent.argv[0]);
    assert_ptr_not_equal(child.argv[0], parent.argv[0]);
    assert_string_equal(child.executable, parent.executable);
    assert_string_equal(child.cwd, parent.cwd);
    member_begin(&seen, 0, 1);
    parent.arguments[0] ^= 1;
    member_inherit(&seen, &parent);
    assert_string_equal(seen.argv[0], child.argv[0]);
}

/* One that execed and was gone when that was heard of: its name is left, and words of its own. */
static void test_words_of_an_exec(void **state)
{
    static struct member parent, child;
    siginfo_t end;
    (void)state;
    parent.pid = getpid();
    child.pid = fork();
    if (child.pid == 0) {
        execlp("true", "true", NULL);
        _exit(1);
    }
    assert_int_equal(waitid(P_PID, (id_t)child.pid, &end, WEXITED | WNOWAIT), 0);
    assert_true(member_begin(&parent, 0, 1));
    assert_false(member_begin(&child, 0, 1));
    member_inherit(&child, &parent);
    member_disinherit(&child, &parent);
    assert_string_equal(child.argv[0], "true");
    assert_null(child.argv[1]);
    assert_string_equal(child.executable, "");
    member_disinherit(&child, &parent);
    assert_string_equal(child.argv[0], "true");
    assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
    member_inherit(&child, &parent);
    assert_string_equal(child.argv[0], "true");
    child.argv[0] = NULL;
    member_inherit(&child, &parent);
    member_disinherit(&child, &parent);
    assert_null(child.argv[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exec_is_heard_of_late),
        cmocka_unit_test(test_exec_of_a_program_nobody_saw),
        cmocka_unit_test(test_words_of_a_fork),
        cmocka_unit_test(test_words_of_an_exec),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
