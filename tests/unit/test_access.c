/* Every reason for which the kernel refuses us a process, and what we then say. */
#define _GNU_SOURCE 1 /* setresuid, unshare */

#include "child.h"
#include "sampler/target/access.h"
#include "sampler/target/trace.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/syscall.h>

enum { NOBODY = 65534, NOT_POSSIBLE = 77 };

/* What is shared between a test and its children. */
struct board {
    pid_t pid;
    int result;
    struct failure why;
};

static struct board *board;

static int set_up(void **state)
{
    (void)state;
    board = shared_zeroed(board, sizeof *board);
    return 0;
}

/* A refusal: what the target makes of itself, what we make of ourselves, and what we are then told.
 */
struct refusal {
    const char *name;
    void (*target)(void);
    void (*reader)(void);
    const char *sentence;
};

static void ids_set(uint32_t gid, uint32_t uid)
{
    if (setresgid(gid, gid, gid) || setresuid(uid, uid, uid) || prctl(PR_SET_DUMPABLE, 1))
        _exit(94);
}

static void stay_root(void)
{
}

static void become_nobody(void)
{
    ids_set(NOBODY, NOBODY);
}

static void become_nobody_of_another_group(void)
{
    ids_set(NOBODY - 1, NOBODY);
}

static void become_nobody_not_dumpable(void)
{
    become_nobody();
    prctl(PR_SET_DUMPABLE, 0);
}

/* A user other than root that keeps its capabilities. */
static void become_nobody_capable(void)
{
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct data[2];
    prctl(PR_SET_KEEPCAPS, 1);
    ids_set(NOBODY, NOBODY);
    if (syscall(SYS_capget, &header, data) || !data[0].permitted)
        _exit(95);
}

static void enter_user_namespace(void)
{
    if (unshare(CLONE_NEWUSER))
        _exit(NOT_POSSIBLE);
}

static void refuse_ptrace(void)
{
    filter_calls(SYS_ptrace, SYS_process_vm_readv, EPERM);
    become_nobody();
}

static const struct refusal refusals[] = {
    { "uid", stay_root, become_nobody, "it belongs to uid 0, we are uid 65534" },
    { "gid", become_nobody_of_another_group, become_nobody,
      "its group is gid 65533, ours gid 65534" },
    { "dumpable", become_nobody_not_dumpable, become_nobody, "it is not dumpable" },
    { "capability", become_nobody_capable, become_nobody, "it holds capabilities that we lack" },
    { "user namespace", stay_root, enter_user_namespace, "it lives in a user namespace where we" },
    { "seccomp", stay_root, refuse_ptrace, "a seccomp filter of our own sandbox" },
};

static void rest_as(struct child_side *side)
{
    ((const struct refusal *)side->argument)->target();
    rest(side);
}

static void try_as(struct child_side *side)
{
    ((const struct refusal *)side->argument)->reader();
    struct process *process;
    board->result = process_open(board->pid, &process, &board->why);
}

static void test_refusals(void **state)
{
    (void)state;
    if (geteuid()) {
        SKIP("needs root to make targets of others");
    }
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *refusal = &refusals[i];
        AUTO_CHILD struct child target = child_start(rest_as, (void *)refusal);
        child_await_ready(&target);
        memset(board, 0, sizeof *board);
        board->pid = target.pid;
        struct child reader = child_start(try_as, (void *)refusal);
        int status = child_wait(&reader);
        if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_POSSIBLE) {
            print_message("[  SKIPPED ] refusal by %s: not possible here\n", refusal->name);
            continue;
        }
        assert_int_equal(status, 0);
        if (board->result != -EPERM || !strstr(board->why.text, refusal->sentence))
            fail_msg("%s: %d, \"%s\"", refusal->name, board->result, board->why.text);
    }
}

static void pause_and_hang(struct child_side *side)
{
    struct pause pause;
    prctl(PR_SET_NAME, "some-tracer");
    if (thread_pause(*(pid_t *)side->argument, &pause))
        _exit(92);
    rest(side);
}

/* A tracer keeps nobody from reading. */
static void test_refusal_by_another_tracer(void **state)
{
    (void)state;
    AUTO_CHILD struct child target = child_start(rest, NULL);
    child_await_ready(&target);
    AUTO_CHILD struct child tracer = child_start(pause_and_hang, &target.pid);
    child_await_ready(&tracer);
    AUTO_PROCESS struct process *process = open_child(&target);
    struct failure why = { 0 };
    char sentence[64];
    assert_int_equal(process_explain_denied(process, "trace", &why), -EPERM);
    snprintf(sentence, sizeof sentence, "process %d (some-tracer) traces it", tracer.pid);
    if (!strstr(why.text, sentence))
        fail_msg("%s", why.text);

    child_kill(&tracer);
    assert_int_equal(process_explain_denied(process, "trace", &why), 0);
    child_kill(&target);
    assert_int_equal(process_explain_denied(process, "trace", &why), -ESRCH);
}

/* The facts of an equal user without rights over the target; each case changes what matters to it.
 */
static struct access_facts plain_facts(void)
{
    return (struct access_facts){
        .pid = 7, .uid = 5, .gid = 6, .uids = { 5, 5, 5 }, .gids = { 6, 6, 6 }, .proc_owner = 5
    };
}

static void assert_explained(const struct access_facts *facts, const char *sentence)
{
    struct failure why = { 0 };
    assert_int_equal(access_explain(facts, "trace", &why), -EPERM);
    assert_int_equal(why.code, -EPERM);
    if (strncmp(why.text, "not allowed to trace process 7", 30) || !strstr(why.text, sentence))
        fail_msg("\"%s\" does not say \"%s\"", why.text, sentence);
}

static void test_facts(void **state)
{
    (void)state;
    const uint64_t ptrace_bit = UINT64_C(1) << CAP_SYS_PTRACE;
    struct access_facts facts = plain_facts();
    assert_explained(&facts, "the kernel does not say why");

    facts.yama = 1;
    assert_explained(&facts, "sysctl kernel.yama.ptrace_scope=0");
    facts.descendant = true;
    assert_explained(&facts, "the kernel does not say why");
    facts.yama = 2;
    assert_explained(&facts, "only holders of CAP_SYS_PTRACE");
    facts.capabilities = ptrace_bit;
    assert_explained(&facts, "the kernel does not say why");
    facts.yama = 3;
    assert_explained(&facts, "until the next boot");
    facts.yama = 99;
    assert_explained(&facts, "Yama (kernel.yama.ptrace_scope=3)");

    facts = plain_facts();
    facts.uids[2] = 8;
    assert_explained(&facts, "it belongs to uid 8, we are uid 5");
    facts.capabilities = ptrace_bit;
    assert_explained(&facts, "the kernel does not say why");
    facts.other_user_namespace = true;
    assert_explained(&facts, "nsenter --user --target 7");
    facts.kernel_thread = true;
    assert_explained(&facts, "thread of the kernel");

    facts = plain_facts();
    facts.readable = true;
    facts.yama = 3;
    assert_int_equal(access_explain(&facts, "trace", NULL), 0);
    facts.tracer = 12;
    assert_explained(&facts, "process 12 () traces it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_refusals, set_up),
        cmocka_unit_test_setup(test_refusal_by_another_tracer, set_up),
        cmocka_unit_test_setup(test_facts, set_up),
    };
    return cmocka_run_group_tests_name("access", tests, NULL, NULL);
}
