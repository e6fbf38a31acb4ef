/* Where a call is safe: a program that does nothing but allocate is made to allocate more, in the
 * middle of its own work, by calls of the very functions that it is in most of the time. */
#define _GNU_SOURCE 1 /* dlsym */

#include "child.h"
#include "sampler/loop/c_library.h"
#include "sampler/loop/safe_thread.h"

#include <dlfcn.h>

enum { THREADS = 4, ROUNDS = 60, BLOCKS = 64, SIZE = 1000 };

struct counters {
    atomic_ulong steps;
    atomic_bool go;
};

static struct counters *counters;

static int set_up(void **state)
{
    (void)state;
    counters = shared_zeroed(counters, sizeof *counters);
    return 0;
}

static void block_check(const unsigned char *block, size_t size, unsigned char mark)
{
    for (size_t i = 0; i < size; i++)
        if (block[i] != mark)
            _exit(95);
}

/* Sizes from all of the allocator's ways: its caches, its bins, the top of the heap, the kernel. */
static void *allocate_on(void *unused)
{
    unsigned char *blocks[BLOCKS] = { NULL };
    size_t sizes[BLOCKS] = { 0 };
    for (unsigned step = 1; !counters->go; step++) {
        unsigned at = step * 2654435761u >> 26;
        if (blocks[at])
            block_check(blocks[at], sizes[at], (unsigned char)at);
        free(blocks[at]);
        sizes[at] = step % 97 == 0 ? 300000 : (step * 40503u >> 7) % 3000 + 1;
        blocks[at] = malloc(sizes[at]);
        memset(blocks[at], (int)at, sizes[at]);
        counters->steps++;
    }
    for (unsigned at = 0; at < BLOCKS; at++)
        free(blocks[at]);
    return unused;
}

static void storm(struct child_side *side)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, allocate_on, NULL))
            _exit(96);
    child_say_ready(side);
    allocate_on(NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static remote_addr address_of(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    assert_non_null(found);
    return (uintptr_t)found;
}

static struct inject_code code_of(struct process *process)
{
    struct c_library library;
    struct failure why = { 0 };
    struct maps maps = { 0 };
    assert_int_equal(maps_read(process->proc_fd, &maps), 0);
    if (c_library_find(process, &maps, &library, &why))
        fail_msg("%s", why.text);
    maps_done(&maps);
    assert_int_equal(library.functions[C_ERRNO], address_of("__errno_location"));
    return library.code;
}

static void allocate_there(struct process *process, const struct inject_code *code, uint64_t size)
{
    struct injection_thread *thread = NULL;
    struct failure why = { 0 };
    struct pause pause = { 0 };
    uint64_t block, nothing;
    const struct safe_search search = { .cancel_fd = -1, .patience_ms = 5000 };
    if (safe_thread_find(process, &search, &pause, &why) ||
        inject_begin(process, &pause, code, &thread, &why))
        fail_msg("%s", why.text);
    const uint64_t wish[INJECT_ARGUMENTS] = { size };
    assert_int_equal(inject_call(thread, address_of("malloc"), wish, &block), 0);
    assert_true(block != 0 && block % 16 == 0);
    const uint64_t given[INJECT_ARGUMENTS] = { block };
    assert_int_equal(inject_call(thread, address_of("free"), given, &nothing), 0);
    inject_end(thread);
}

/* Linked into the program itself, by a sanitizer, as the storm is: then nowhere there is it safe.
 */
static bool allocator_is_the_programs(void)
{
    Dl_info allocator, program;
    return dladdr((void *)(uintptr_t)address_of("malloc"), &allocator) &&
           dladdr((void *)(uintptr_t)storm, &program) && allocator.dli_fbase == program.dli_fbase;
}

static void test_storm(void **state)
{
    (void)state;
    if (allocator_is_the_programs()) {
        SKIP("the allocator is the program's own");
    }
    AUTO_CHILD struct child child = child_start(storm, NULL);
    child_await_ready(&child);
    AUTO_PROCESS struct process *process = open_child(&child);
    const struct inject_code code = code_of(process);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        unsigned long before = counters->steps;
        allocate_there(process, &code, SIZE * (i + 1));
        await(counters->steps > before);
    }
    counters->go = true;
    assert_int_equal(child_wait(&child), 0);
}

static void test_no_c_library(void **state)
{
    (void)state;
    static const struct mapping loaders[] = { { .path = "/lib/ld-musl-x86_64.so.1" },
                                              { .path = "/opt/program" } };
    struct process process = { .pid = 77 };
    struct c_library library;
    struct failure why = { 0 };
    struct maps musl = { .list = (struct mapping *)&loaders[0], .count = 1 };
    struct maps fixed = { .list = (struct mapping *)&loaders[1], .count = 1 };
    assert_int_equal(c_library_find(&process, &musl, &library, &why), -ENOTSUP);
    assert_non_null(strstr(why.text, "not glibc"));
    assert_int_equal(c_library_find(&process, &fixed, &library, &why), -ENOTSUP);
    assert_non_null(strstr(why.text, "linked statically"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_storm, set_up),
        cmocka_unit_test(test_no_c_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
