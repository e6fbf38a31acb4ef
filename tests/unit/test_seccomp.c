/* Filters are run here as the kernel runs them: programs made to order, and a child's own. */
#define _GNU_SOURCE 1 /* SYS_memfd_create */

#include "child.h"
#include "sampler/target/seccomp.h"

#include <errno.h>
#include <sys/syscall.h>

#define LENGTH(program) (sizeof(program) / sizeof *(program))

static const struct seccomp_data data = { .nr = 7, .arch = 9, .args = { 0x1122334455667788, 3 } };

static uint32_t answer_of(const struct sock_filter *program, size_t length)
{
    uint32_t answer = 0xdead;
    assert_int_equal(seccomp_run(program, length, &data, &answer), 0);
    return answer;
}

static void test_words(void **state)
{
    (void)state;
    for (uint32_t at = 0; at < sizeof data; at += 4) {
        const struct sock_filter program[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
            BPF_STMT(BPF_RET | BPF_A, 0),
        };
        uint32_t word;
        memcpy(&word, (const char *)&data + at, sizeof word);
        assert_int_equal(answer_of(program, LENGTH(program)), word);
    }
}

static void test_arithmetic(void **state)
{
    (void)state;
    static const struct {
        uint16_t code;
        uint32_t operand, answer;
    } cases[] = {
        { BPF_ADD, 5, 105 }, { BPF_SUB, 1, 99 }, { BPF_MUL, 3, 300 },   { BPF_DIV, 7, 14 },
        { BPF_AND, 6, 4 },   { BPF_OR, 3, 103 }, { BPF_XOR, 1, 101 },   { BPF_LSH, 2, 400 },
        { BPF_RSH, 2, 25 },  { BPF_LSH, 40, 0 }, { BPF_NEG, 0, -100u },
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const struct sock_filter by_constant[] = {
            BPF_STMT(BPF_LD | BPF_IMM, 100),
            BPF_STMT(BPF_ALU | cases[i].code | BPF_K, cases[i].operand),
            BPF_STMT(BPF_RET | BPF_A, 0),
        };
        const struct sock_filter by_index[] = {
            BPF_STMT(BPF_LD | BPF_IMM, cases[i].operand),
            BPF_STMT(BPF_MISC | BPF_TAX, 0),
            BPF_STMT(BPF_LD | BPF_IMM, 100),
            BPF_STMT(BPF_ST, 3),
            BPF_STMT(BPF_LD | BPF_IMM, 1),
            BPF_STMT(BPF_LD | BPF_MEM, 3),
            BPF_STMT(BPF_ALU | cases[i].code | BPF_X, 0),
            BPF_STMT(BPF_RET | BPF_A, 0),
        };
        assert_int_equal(answer_of(by_constant, LENGTH(by_constant)), cases[i].answer);
        assert_int_equal(answer_of(by_index, LENGTH(by_index)), cases[i].answer);
    }
}

static void test_jumps(void **state)
{
    (void)state;
    static const struct {
        uint16_t code;
        uint32_t operand;
        bool holds;
    } cases[] = {
        { BPF_JEQ, 7, true }, { BPF_JEQ, 8, false }, { BPF_JGT, 6, true },  { BPF_JGT, 7, false },
        { BPF_JGE, 7, true }, { BPF_JGE, 8, false }, { BPF_JSET, 2, true }, { BPF_JSET, 8, false },
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const struct sock_filter program[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | cases[i].code | BPF_K, cases[i].operand, 1, 0),
            BPF_STMT(BPF_RET | BPF_K, 0),
            BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
            BPF_STMT(BPF_RET | BPF_K, 2),
            BPF_STMT(BPF_RET | BPF_K, 1),
        };
        assert_int_equal(answer_of(program, LENGTH(program)), cases[i].holds);
    }
}

static void test_nonsense(void **state)
{
    (void)state;
    static const struct sock_filter programs[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, sizeof data),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 3),
        BPF_STMT(BPF_LD | BPF_MEM, BPF_MEMWORDS),
        BPF_STMT(BPF_ST, BPF_MEMWORDS),
        BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0),
        BPF_JUMP(BPF_JMP | BPF_JA, UINT32_MAX, 0, 0),
        BPF_STMT(BPF_LD | BPF_IMM, 0), /* it ends without an answer */
    };
    uint32_t answer;
    for (size_t i = 0; i < LENGTH(programs); i++)
        assert_int_equal(seccomp_run(&programs[i], 1, &data, &answer), -EBADMSG);
}

static void rest_filtered(struct child_side *side)
{
    filter_calls(SYS_memfd_create, SYS_memfd_create, EPERM);
    filter_calls(SYS_mremap, SYS_mremap, ENOSYS);
    rest(side);
}

static int check(pid_t tid, int call, const struct seccomp_call **ret_refused)
{
    const struct seccomp_call calls[] = { { "getpid", SYS_getpid, { 0 } }, { "", call, { 0 } } };
    struct pause pause;
    while (thread_pause(tid, &pause) == -EAGAIN)
        sched_yield();
    int error = seccomp_check(&pause, calls, LENGTH(calls), ret_refused);
    if (error == -EACCES && (*ret_refused)->number != call)
        error = -EBADMSG;
    thread_resume(&pause);
    return error;
}

static void test_child(void **state)
{
    (void)state;
    const struct seccomp_call *refused;
    AUTO_CHILD struct child child = child_start(rest_filtered, NULL);
    child_await_ready(&child);
    int error = check(child.pid, SYS_munmap, &refused);
    if (error == -EPERM)
        SKIP("filters cannot be read here");
    assert_int_equal(error, 0);
    assert_int_equal(check(child.pid, SYS_memfd_create, &refused), -EACCES);
    assert_int_equal(check(child.pid, SYS_mremap, &refused), -EACCES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words), cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_jumps), cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
