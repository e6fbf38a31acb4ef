/* The C library that an injection goes through: found in a process that has it, and what is said
 * where there is another one, or none. */
#include "tests/unit/child.h"

#include "sampler/loop/c_library.h"

#include <dlfcn.h>
#include <errno.h>

static void maps_make(const char *text, struct maps *ret)
{
    assert_int_equal(maps_parse(text, strlen(text), ret), 0);
}

static struct process *own_process(void)
{
    struct process *process = NULL;
    struct failure why = { 0 };
    if (process_open(getpid(), &process, &why))
        fail_msg("%s", why.text);
    return process;
}

/* An address that dlsym gives is the function's, for all that the test itself calls. */
static void test_own(void **state)
{
    (void)state;
    CLEANUP(process_closep) struct process *process = own_process();
    CLEANUP(maps_done) struct maps maps = { 0 };
    struct c_library library;
    struct failure why = { 0 };
    assert_int_equal(maps_read(process->proc_fd, &maps), 0);
    int error = c_library_find(process, &maps, &library, &why);
    if (error == -ENOTSUP && !inject_is_known())
        SKIP("nothing can be injected on this kind of machine");
    if (error)
        fail_msg("%s", why.text);
    void *handle = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    assert_non_null(handle);
    assert_int_equal(library.functions[C_SYSCALL], (uintptr_t)dlsym(handle, "syscall"));
    assert_int_equal(library.functions[C_ERRNO], (uintptr_t)dlsym(handle, "__errno_location"));
    dlclose(handle);
    for (size_t i = 0; i < C_DLERROR; i++)
        assert_true(maps_find(&maps, library.functions[i])->executable);
    assert_true(maps_find(&maps, library.code.restorer)->executable);
    assert_true(maps_find(&maps, library.code.keeper)->executable);
}

static void check_refused(const char *mappings, const char *says)
{
    CLEANUP(process_closep) struct process *process = own_process();
    CLEANUP(maps_done) struct maps maps = { 0 };
    struct c_library library;
    struct failure why = { 0 };
    maps_make(mappings, &maps);
    assert_int_equal(c_library_find(process, &maps, &library, &why), -ENOTSUP);
    assert_int_equal(why.code, -ENOTSUP);
    if (!strstr(why.text, says))
        fail_msg("\"%s\" does not say \"%s\"", why.text, says);
}

static void test_musl(void **state)
{
    (void)state;
    check_refused("400000-401000 r-xp 00000000 08:01 11 /usr/bin/python3.12\n"
                  "7f0000000000-7f0000090000 r-xp 00000000 08:01 12 /lib/ld-musl-x86_64.so.1\n",
                  "is not glibc");
}

static void test_static(void **state)
{
    (void)state;
    check_refused("400000-401000 r-xp 00000000 08:01 11 /opt/static/python3.12\n"
                  "7ffff000-80000000 rw-p 00000000 00:00 0 [stack]\n",
                  "is linked statically");
}

/* Of its name, and nothing of what it should have. */
static void test_other_glibc(void **state)
{
    (void)state;
    check_refused("7f0000000000-7f0000001000 r--p 00000000 08:01 13 /lib/libc.so.6\n",
                  "is not built as those that are known");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own),
        cmocka_unit_test(test_musl),
        cmocka_unit_test(test_static),
        cmocka_unit_test(test_other_glibc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
