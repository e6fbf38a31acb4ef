/* A live process's memory, by the call made for it and by the file that stands in. */
#define _GNU_SOURCE 1 /* SYS_process_vm_readv */

#include "child.h"

#include <errno.h>
#include <sys/syscall.h>

enum { PIECES = 3000 };

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
    assert_false(process->reads_by_file);
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
    assert_true(process->reads_by_file);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_of_the_dead),
        cmocka_unit_test(test_memory_without_the_call),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
