/* The search for the runtime, in made processes: every build, every namespace, every failure. */
#define _GNU_SOURCE 1 /* nftw */

#include "sampler/base/cleanup.h"
#include "symbols/find_python.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/unit/made_process.h"

#define RUNTIME_NAME "_PyRuntime", ELF_IMAGE_DATA + AT_DATA

static const struct elf_plan EXPORTING = { .exported = { { RUNTIME_NAME } } };

/* ---- by name ---- */

static void test_shared_build(void **state)
{
    struct world *world = *state;
    object_add(world, "/bin/host", &NOTHING);
    struct object *library = object_add(world, "/lib/libpython3.8.so.1.0", &EXPORTING);
    runtime_put(library, AT_DATA, "_runtime", 0x030812f0);
    assert_found(world, library, AT_DATA, FOUND_BY_SYMBOL);
    assert_int_equal(world->found.version_hex, 0x030812f0);
    assert_string_equal(world->found.object_path, "/lib/libpython3.8.so.1.0");
    assert_int_equal(world->probes, 1);
}

static void test_static_build(void **state)
{
    struct world *world = *state;
    struct object *host = object_add(world, "/bin/host", &EXPORTING);
    runtime_put(host, AT_DATA, "_runtime", 0x030b0000);
    assert_found(world, host, AT_DATA, FOUND_BY_SYMBOL);
}

static void test_static_build_at_fixed_address(void **state)
{
    struct world *world = *state;
    struct elf_plan plan = EXPORTING;
    plan.fixed_address = LOAD;
    struct object *host = object_add(world, "/bin/host", &plan);
    runtime_put(host, AT_DATA, "_runtime", 0x030b0000);
    assert_found(world, host, AT_DATA, FOUND_BY_SYMBOL);
}

static void test_symtab_alone(void **state)
{
    struct world *world = *state;
    struct object *host =
        object_add(world, "/bin/host", &(struct elf_plan){ .local = { { RUNTIME_NAME } } });
    runtime_put(host, AT_DATA, "_runtime", 0x030b0000);
    assert_found(world, host, AT_DATA, FOUND_BY_SYMBOL);
}

static void test_section_of_a_stripped_build(void **state)
{
    struct world *world = *state;
    struct object *host =
        object_add(world, "/bin/host",
                   &(struct elf_plan){ .section = { ".PyRuntime", ELF_IMAGE_DATA + AT_DATA } });
    runtime_put(host, AT_DATA, "_runtime", 0x030b0000);
    assert_found(world, host, AT_DATA, FOUND_BY_SECTION);
}

static void test_without_section_headers(void **state)
{
    static const enum elf_image_hash kinds[] = { HASH_GNU, HASH_SYSV };
    struct world *world = *state;
    struct object *host = NULL;
    for (size_t i = 0; i < 2; i++)
        host = object_add(world, i ? "/bin/host" : "/lib/other.so",
                          &(struct elf_plan){ .exported = { { RUNTIME_NAME } },
                                              .no_sections = true,
                                              .hash = kinds[i] });
    runtime_put(host, AT_DATA, "_runtime", 0x030b0000);
    assert_found(world, host, AT_DATA, FOUND_BY_SYMBOL);
}

/* Where PyInstaller, conda or a distribution gave the object a name of its own. */
static void test_name_without_python(void **state)
{
    struct world *world = *state;
    object_add(world, "/bin/host", &NOTHING);
    struct object *library = object_add(world, "/opt/app/libengine.so", &EXPORTING);
    runtime_put(library, AT_DATA, "_runtime", 0x030b0000);
    assert_found(world, library, AT_DATA, FOUND_BY_SYMBOL);
}

/* A host that refers to _PyRuntime itself holds the one in use; the library's is never set up. */
static void test_copy_relocated_host(void **state)
{
    struct world *world = *state;
    struct object *host = object_add(world, "/bin/host",
                                     &(struct elf_plan){
                                         .exported = { { "_PyRuntime", ELF_IMAGE_DATA + AT_BSS } },
                                     });
    struct object *library = object_add(world, "/lib/libpython3.11.so", &EXPORTING);
    runtime_put(host, AT_BSS, "_runtime", 0x030b0000);
    runtime_put(library, AT_DATA, "_runtime", 0x030b0000)->main = 0;
    assert_found(world, host, AT_BSS, FOUND_BY_SYMBOL);
}

/* A static build that loads itself has two; take the one whose content validates, whichever it is.
 */
static void test_two_mappings_of_one_file(void **state)
{
    struct world *world = *state;
    struct object *objects[2];
    for (size_t i = 0; i < 2; i++) {
        objects[i] = object_add(world, "/bin/host", &EXPORTING);
        runtime_put(objects[i], AT_DATA, "_runtime", 0x030b0000)->main = 0;
    }
    for (size_t i = 0; i < 2; i++) {
        struct runtime *runtime = runtime_put(objects[i], AT_DATA, "_runtime", 0x030b0000);
        assert_found(world, objects[i], AT_DATA, FOUND_BY_SYMBOL);
        runtime->main = 0;
    }
}

/* ---- which file ---- */

static void test_renamed_or_deleted_executable(void **state)
{
    struct world *world = *state;
    unlink(fake_path(&world->proc, "exe"));
    fake_link(&world->proc, "exe", "/tmp/moved (deleted)");
    struct object *host = object_add(world, "/tmp/moved (deleted)", &EXPORTING);
    runtime_put(host, AT_DATA, "_runtime", 0x030b0000);
    assert_found(world, host, AT_DATA, FOUND_BY_SYMBOL);
    assert_string_equal(world->found.object_path, "/tmp/moved");
}

static void test_another_mount_namespace(void **state)
{
    struct world *world = *state;
    struct object *host = object_map(world, "/bin/host", &EXPORTING, "root/bin/host");
    runtime_put(host, AT_DATA, "_runtime", 0x030b0000);
    assert_found(world, host, AT_DATA, FOUND_BY_SYMBOL);
}

static void test_chroot_in_same_mount_namespace(void **state)
{
    struct world *world = *state;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", fake_path(&world->proc, "jail/bin/host"));
    struct object *host = object_map(world, path, &EXPORTING, "jail/bin/host");
    runtime_put(host, AT_DATA, "_runtime", 0x030b0000);
    assert_found(world, host, AT_DATA, FOUND_BY_SYMBOL);
}

/* An upgrade replaced the file and nobody lets us see the old one: memory must do. */
static void test_file_out_of_reach(void **state)
{
    struct world *world = *state;
    struct object *host = object_map(world, "/bin/host", &EXPORTING, NULL);
    runtime_put(host, AT_DATA, "xdebugpy", 0x030e00f0);
    assert_found(world, host, AT_DATA, FOUND_BY_COOKIE);
}

/* ---- which version ---- */

static void test_version_symbol_goes_before_names(void **state)
{
    struct world *world = *state;
    struct object *library = object_add(
        world, "/lib/libpython3.8.so",
        &(struct elf_plan){
            .exported = { { RUNTIME_NAME }, { "Py_Version", ELF_IMAGE_DATA + VERSION_AT } } });
    memcpy(library->memory + VERSION_AT, &(uint32_t){ 0x030b02f0 }, 4);
    runtime_put(library, AT_DATA, "_runtime", 0x030b02f0);
    assert_found(world, library, AT_DATA, FOUND_BY_SYMBOL);
    assert_int_equal(world->last_hint, 0x030b02f0);
    assert_int_equal(world->probes, 1);
}

static void test_lying_name(void **state)
{
    struct world *world = *state;
    struct object *library = object_add(world, "/lib/libpython3.8.so", &EXPORTING);
    runtime_put(library, AT_DATA, "_runtime", 0x030902f0);
    assert_found(world, library, AT_DATA, FOUND_BY_SYMBOL);
    assert_int_equal(world->found.version_hex, 0x030902f0);
}

static void test_old_release(void **state)
{
    struct world *world = *state;
    object_add(world, "/bin/host", &NOTHING);
    object_add(world, "/lib/libpython2.7.so.1.0",
               &(struct elf_plan){ .exported = { { "Py_GetVersion", 0x1100 } } });
    assert_not_found(world, -ENOTSUP, "CPython 2.7 (in /lib/libpython2.7.so.1.0)");
    assert_int_equal(world->bytes_read, 0);
}

static void test_release_that_the_judge_does_not_know(void **state)
{
    static const struct {
        uint32_t version;
        const char *told;
    } rows[] = {
        { 0x03070000, "CPython 3.7 (in /bin/host)" },
        { 0x031002f0, "CPython 3.16.2 (in /bin/host)" },
        { 0x031000a7, "CPython 3.16.0a7, a pre-release (in /bin/host)" },
        { 0x031000b4, "CPython 3.16.0b4, a pre-release (in /bin/host)" },
        { 0x031001c2, "CPython 3.16.1rc2, a pre-release (in /bin/host)" },
    };
    struct world *world = *state;
    struct object *host = object_add(world, "/bin/host", &EXPORTING);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        runtime_put(host, AT_DATA, i ? "xdebugpy" : "_runtime", rows[i].version);
        assert_not_found(world, -ENOTSUP, rows[i].told);
    }
}

/* ---- no Python ---- */

static void test_other_program(void **state)
{
    struct world *world = *state;
    heap_map(world);
    object_add(world, "/bin/host", &(struct elf_plan){ .exported = { { "main", 0x1100 } } });
    assert_not_found(world, -ENOENT, "it runs /bin/host");
}

static void test_other_program_that_was_deleted(void **state)
{
    struct world *world = *state;
    unlink(fake_path(&world->proc, "exe"));
    fake_link(&world->proc, "exe", "/tmp/old (deleted)/host (deleted)");
    object_add(world, "/tmp/old (deleted)/host (deleted)", &NOTHING);
    assert_not_found(world, -ENOENT, "it runs /tmp/old (deleted)/host, and");
}

static void test_other_program_out_of_reach(void **state)
{
    struct world *world = *state;
    object_map(world, "/bin/host", &NOTHING, NULL);
    assert_not_found(world, -ENOENT, "1 of its 1 mapped objects could not be opened");
}

static void test_program_of_32_bits(void **state)
{
    struct world *world = *state;
    char path[PATH_MAX];
    fake_write(&world->proc, "small", ELFMAG "\1\1\1\0\0\0\0\0\0\0\0", EI_NIDENT);
    snprintf(path, sizeof path, "%s", fake_path(&world->proc, "small"));
    unlink(fake_path(&world->proc, "exe"));
    fake_link(&world->proc, "exe", path);
    object_add(world, "/bin/host", &NOTHING);
    assert_not_found(world, -ENOENT, "a 32-bit program");
}

static void test_kernel_thread(void **state)
{
    struct world *world = *state;
    unlink(fake_path(&world->proc, "exe"));
    fake_write(&world->proc, "comm", "kworker/0:1\n", 12);
    fake_write(&world->proc, "maps", "", 0);
    assert_int_equal(
        python_find(&world->counting, world->proc.fd, &world->judge, &world->found, &world->why),
        -ENOENT);
    assert_non_null(strstr(world->why.text, "[kworker/0:1]"));
}

static void test_runtime_without_interpreter(void **state)
{
    struct world *world = *state;
    object_add(world, "/bin/host", &NOTHING);
    struct object *library = object_add(world, "/lib/libpython3.11.so", &EXPORTING);
    runtime_put(library, AT_DATA, "_runtime", 0x030b0000)->main = 0;
    assert_not_found(world, -EAGAIN, "/lib/libpython3.11.so");
    assert_non_null(strstr(world->why.text, "/bin/host"));
}

static void test_memory_out_of_reach(void **state)
{
    static const int errors[] = { -EPERM, -ESRCH };
    struct world *world = *state;
    object_add(world, "/bin/host", &EXPORTING);
    for (size_t i = 0; i < 2; i++) {
        world->read_error = errors[i];
        assert_not_found(world, errors[i], "");
        assert_true(strlen(world->why.text) > 0);
        assert_int_equal(world->bytes_read, (i + 1) * sizeof(struct runtime));
    }
}

static void test_ended_process(void **state)
{
    struct world *world = *state;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    char path[32];
    siginfo_t info;
    snprintf(path, sizeof path, "/proc/%d", child);
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int reaped = 0; reaped < 2; reaped++) {
        int error = python_find(&world->counting, fd, &world->judge, &world->found, &world->why);
        assert_int_equal(error, -ESRCH);
        assert_int_equal(waitpid(child, NULL, 0), reaped ? -1 : child);
    }
}

static void test_forced_methods(void **state)
{
    struct world *world = *state;
    heap_map(world);
    struct object *host =
        object_add(world, "/bin/host",
                   &(struct elf_plan){ .exported = { { RUNTIME_NAME } },
                                       .section = { ".PyRuntime", ELF_IMAGE_DATA + AT_DATA } });
    runtime_put(host, AT_DATA, "xdebugpy", 0x030e00f0);
    for (unsigned by = 0; by < FOUND_BY_COUNT; by++) {
        world->judge.methods = 1u << by;
        assert_found(world, host, AT_DATA, by);
    }
}

int main(void)
{
#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(test_shared_build),
        IN_A_WORLD(test_static_build),
        IN_A_WORLD(test_static_build_at_fixed_address),
        IN_A_WORLD(test_symtab_alone),
        IN_A_WORLD(test_section_of_a_stripped_build),
        IN_A_WORLD(test_without_section_headers),
        IN_A_WORLD(test_name_without_python),
        IN_A_WORLD(test_copy_relocated_host),
        IN_A_WORLD(test_two_mappings_of_one_file),
        IN_A_WORLD(test_renamed_or_deleted_executable),
        IN_A_WORLD(test_another_mount_namespace),
        IN_A_WORLD(test_chroot_in_same_mount_namespace),
        IN_A_WORLD(test_file_out_of_reach),
        IN_A_WORLD(test_version_symbol_goes_before_names),
        IN_A_WORLD(test_lying_name),
        IN_A_WORLD(test_old_release),
        IN_A_WORLD(test_release_that_the_judge_does_not_know),
        IN_A_WORLD(test_other_program),
        IN_A_WORLD(test_other_program_that_was_deleted),
        IN_A_WORLD(test_other_program_out_of_reach),
        IN_A_WORLD(test_program_of_32_bits),
        IN_A_WORLD(test_kernel_thread),
        IN_A_WORLD(test_runtime_without_interpreter),
        IN_A_WORLD(test_memory_out_of_reach),
        IN_A_WORLD(test_ended_process),
        IN_A_WORLD(test_forced_methods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
