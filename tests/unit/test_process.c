/* A process's identity, its memory however we get at it, its family, and every reason to be
 * refused. */
#define _GNU_SOURCE 1 /* setresuid, gettid */

#include "child.h"
#include "sampler/target/access.h"
#include "sampler/target/proc_file.h"
#include "sampler/target/trace.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

enum { NOBODY = 65534, PIECES = 3000 };

/* What is shared between a test and its children. */
struct board {
    pid_t pids[4];
    atomic_int count;
    struct failure why;
    int result;
};

static struct board *board;

static int set_up(void **state)
{
    (void)state;
    if (!board)
        board = shared_new(sizeof *board);
    memset(board, 0, sizeof *board);
    return 0;
}

static void rest(struct child_side *side)
{
    child_say_ready(side);
    child_await_order(side);
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
        proc_parse_stat("7 (a) b (c) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 "
                        "22 23 24 18446744073709551615 26 27 28 29\n",
                        &stat),
        0);
    assert_int_equal(stat.state, 'S');
    assert_int_equal(stat.parent, 4);
    assert_int_equal(stat.flags, 9);
    assert_int_equal(stat.threads, 20);
    assert_int_equal(stat.start_time, 22);
    assert_int_equal(stat.stack_start, 28);
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
        pthread_exit(NULL);
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
        skip(); /* in a container */
    assert_not_opened(2, -EPERM, "thread of the kernel");
}

static struct remote_piece *pieces_new(const uint32_t *from, uint32_t *into)
{
    struct remote_piece *pieces = calloc(PIECES, sizeof *pieces);
    assert_non_null(pieces);
    /* Every seventh is empty: it takes part, and takes nothing. */
    for (size_t i = 0; i < PIECES; i++)
        pieces[i] =
            (struct remote_piece){ (uintptr_t)&from[i], &into[i], i % 7 ? sizeof *from : 0 };
    return pieces;
}

static void check_many_pieces(struct process *process, const uint32_t *words)
{
    uint32_t got[PIECES] = { 0 };
    AUTO_FREE struct remote_piece *pieces = pieces_new(words, got);
    assert_int_equal(process->memory.read_pieces(&process->memory, pieces, PIECES, NULL), PIECES);
    for (uint32_t i = 0; i < PIECES; i++)
        assert_int_equal(got[i], i % 7 ? words[i] : 0);
}

/* The first page of two is there in the target: what lies across the edge comes in part. */
static void check_edge(struct process *process, const char *pages, size_t page)
{
    struct remote *memory = &process->memory;
    char a[8], b[64], c[8];
    struct remote_piece pieces[] = {
        { (uintptr_t)pages, a, sizeof a },
        { (uintptr_t)pages + page, c, 0 },
        { (uintptr_t)pages + page - 24, b, sizeof b },
        { (uintptr_t)pages, c, sizeof c },
    };
    size_t tail = 99;
    assert_int_equal(memory->read_pieces(memory, pieces, 2, &tail), 2);
    assert_int_equal(tail, 99);
    assert_int_equal(memory->read_pieces(memory, pieces, 4, &tail), 2);
    assert_int_equal(tail, 24);
    assert_memory_equal(b, pages + page - 24, 24);
    assert_int_equal(remote_read_some(memory, (uintptr_t)pages + page - 5, b, 40), 5);
    assert_int_equal(remote_read(memory, (uintptr_t)pages + page, b, 1), -EFAULT);
    assert_int_equal(memory->read_pieces(memory, pieces + 1, 1, NULL), 1);
    assert_int_equal(memory->read_pieces(memory, pieces, 0, NULL), 0);
    assert_int_equal(remote_read(memory, 0, b, 1), -EFAULT);
    assert_int_equal(remote_read(memory, UINT64_MAX - 7, b, 8), -EFAULT);
    assert_int_equal(remote_read(memory, UINT64_MAX - 3, b, 8), -EFAULT);
    assert_int_equal(remote_read(memory, (uintptr_t)pages, b, SIZE_MAX / 2 + 2), -EFAULT);
    assert_int_equal(remote_read(memory, (uintptr_t)pages, b, 8), 0);
}

struct memory_case {
    uint32_t words[PIECES];
    char *pages;
    size_t page;
};

static struct memory_case *memory_case_new(void)
{
    struct memory_case *memory = shared_new(sizeof *memory);
    for (uint32_t i = 0; i < PIECES; i++)
        memory->words[i] = i * 2654435761u + 1;
    memory->page = (size_t)sysconf(_SC_PAGESIZE);
    memory->pages = shared_new(2 * memory->page);
    for (size_t i = 0; i < 2 * memory->page; i++)
        memory->pages[i] = (char)(i * 7 + 1);
    return memory;
}

static void rest_with_one_page(struct child_side *side)
{
    struct memory_case *memory = side->argument;
    munmap(memory->pages + memory->page, memory->page);
    rest(side);
}

static void test_memory(void **state)
{
    (void)state;
    struct memory_case *memory = memory_case_new();
    AUTO_CHILD struct child child = child_start(rest_with_one_page, memory);
    child_await_ready(&child);
    AUTO_PROCESS struct process *process = open_child(&child);
    uint64_t calls = process->read_calls;
    check_many_pieces(process, memory->words);
    assert_int_equal(process->read_calls - calls, 3);
    check_edge(process, memory->pages, memory->page);
    assert_int_equal(process->memory_fd, -1);
}

static void test_memory_of_the_dead(void **state)
{
    (void)state;
    struct memory_case *memory = memory_case_new();
    struct child child = child_start(rest_with_one_page, memory);
    child_await_ready(&child);
    AUTO_PROCESS struct process *process = open_child(&child);
    pid_t pid = child.pid;
    char byte;
    kill(pid, SIGKILL);
    await(thread_letter(pid) == 'Z');
    assert_int_equal(remote_read(&process->memory, (uintptr_t)memory->pages, &byte, 1), -ESRCH);
    child_wait(&child);
    assert_int_equal(remote_read(&process->memory, (uintptr_t)memory->pages, &byte, 1), -ESRCH);
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
    struct memory_case *memory = memory_case_new();
    AUTO_CHILD struct child child = child_start(exec_on_order, NULL);
    child_await_ready(&child);
    AUTO_PROCESS struct process *process = open_child(&child);
    char byte, text[8];
    assert_int_equal(remote_read(&process->memory, (uintptr_t)memory->pages, &byte, 1), 0);
    child_order(&child);
    await(!strncmp(command_of(child.pid), "cat ", 4));
    assert_string_equal(command, "cat - a?b?[31m?c");
    assert_int_equal(process_read_command(child.pid, text, sizeof text), 7);
    assert_string_equal(text, "cat - a");

    assert_int_equal(process_check(process), -ESRCH);
    assert_int_equal(remote_read(&process->memory, (uintptr_t)memory->pages, &byte, 1), -ESRCH);
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

    AUTO_FREE pid_t *none = NULL;
    assert_int_equal(process_list_descendants(board->pids[3], &none), 0);
}

/* Lets the kernel answer `error` to one call of ours, or two, from now on, as a sandbox does. */
static void filter_calls(int first, int second, int error)
{
    struct sock_filter rows[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)first, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)second, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof rows / sizeof *rows, rows };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        _exit(93);
}

struct sandbox {
    struct memory_case *memory;
    pid_t target;
    int error;
};

/* Runs in a child, whose filter the test itself must not get. */
static void read_in_a_sandbox(struct child_side *side)
{
    const struct sandbox *sandbox = side->argument;
    char byte;
    filter_calls(SYS_process_vm_readv, SYS_process_vm_readv, sandbox->error);
    struct child target = { .pid = sandbox->target };
    AUTO_PROCESS struct process *process = open_child(&target);
    check_many_pieces(process, sandbox->memory->words);
    check_edge(process, sandbox->memory->pages, sandbox->memory->page);
    assert_true(process->memory_fd >= 0);
    kill(sandbox->target, SIGKILL);
    await(thread_letter(sandbox->target) == 'Z');
    assert_int_equal(remote_read(&process->memory, (uintptr_t)sandbox->memory->pages, &byte, 1),
                     -ESRCH);
    _exit(17);
}

static void test_memory_without_the_call(void **state)
{
    (void)state;
    static const int errors[] = { ENOSYS, EPERM };
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        struct sandbox sandbox = { memory_case_new(), 0, errors[i] };
        AUTO_CHILD struct child target = child_start(rest_with_one_page, sandbox.memory);
        child_await_ready(&target);
        sandbox.target = target.pid;
        struct child reader = child_start(read_in_a_sandbox, &sandbox);
        assert_int_equal(WEXITSTATUS(child_wait(&reader)), 17);
    }
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
        _exit(77);
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
    board->result = process_open(board->pids[0], &process, &board->why);
}

static void test_refusals(void **state)
{
    (void)state;
    if (geteuid()) {
        print_message("[  SKIPPED ] refusals by uid, gid, dumpable, …: need root to make targets "
                      "of others\n");
        skip();
    }
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *refusal = &refusals[i];
        AUTO_CHILD struct child target = child_start(rest_as, (void *)refusal);
        child_await_ready(&target);
        memset(board, 0, sizeof *board);
        board->pids[0] = target.pid;
        struct child reader = child_start(try_as, (void *)refusal);
        int status = child_wait(&reader);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
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
        cmocka_unit_test_setup(test_identity, set_up),
        cmocka_unit_test_setup(test_strange_name, set_up),
        cmocka_unit_test_setup(test_stat_text, set_up),
        cmocka_unit_test_setup(test_status_text, set_up),
        cmocka_unit_test_setup(test_no_such_process, set_up),
        cmocka_unit_test_setup(test_number_of_a_thread, set_up),
        cmocka_unit_test_setup(test_main_thread_has_ended, set_up),
        cmocka_unit_test_setup(test_kernel_thread, set_up),
        cmocka_unit_test_setup(test_memory, set_up),
        cmocka_unit_test_setup(test_memory_of_the_dead, set_up),
        cmocka_unit_test_setup(test_memory_without_the_call, set_up),
        cmocka_unit_test_setup(test_exec, set_up),
        cmocka_unit_test_setup(test_command_of_a_zombie, set_up),
        cmocka_unit_test_setup(test_descendants, set_up),
        cmocka_unit_test_setup(test_refusals, set_up),
        cmocka_unit_test_setup(test_refusal_by_another_tracer, set_up),
        cmocka_unit_test_setup(test_facts, set_up),
    };
    return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
