/* Parsing of /proc/PID/maps: what the kernel writes, what it never would, and a live one. */
#define _GNU_SOURCE 1 /* nftw */

#include "sampler/base/cleanup.h"
#include "symbols/maps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/unit/fake_proc.h"

static struct maps parse(const char *text)
{
    struct maps maps;
    assert_int_equal(maps_parse(text, strlen(text), &maps), 0);
    return maps;
}

static void test_file_line(void **state)
{
    (void)state;
    CLEANUP(maps_done)
    struct maps maps =
        parse("55d710399000-55d71039b000 r-xp 00002000 fe:01 247278        /bin/a b\n");
    assert_int_equal(maps.count, 1);
    const struct mapping *mapping = maps.list;
    assert_int_equal(mapping->start, 0x55d710399000);
    assert_int_equal(mapping->end, 0x55d71039b000);
    assert_int_equal(mapping->file_offset, 0x2000);
    assert_int_equal(mapping->device, makedev(0xfe, 1));
    assert_int_equal(mapping->inode, 247278);
    assert_true(mapping->readable && mapping->executable);
    assert_false(mapping->writable || mapping->deleted);
    assert_string_equal(mapping->path, "/bin/a b");
}

static void test_lines_without_file(void **state)
{
    (void)state;
    CLEANUP(maps_done)
    struct maps maps = parse("1000-2000 rw-p 00000000 00:00 0 \n"
                             "2000-3000 ---s 00000000 00:00 0\n"
                             "3000-4000 rw-p 00000000 00:00 0      [heap]\n"
                             "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]");
    static const char *const paths[] = { "", "", "[heap]", "[vsyscall]" };
    assert_int_equal(maps.count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(maps.list[i].path, paths[i]);
    assert_int_equal(maps.list[3].end, 0xffffffffff601000);
}

static void test_paths(void **state)
{
    (void)state;
    CLEANUP(maps_done)
    struct maps maps = parse("1000-2000 r--p 0 fe:00 7 /gone (deleted)\n"
                             "2000-3000 r--p 0 fe:00 7 /two\\012lines\\\\ \\013\n"
                             "3000-4000 r--p 0 fe:00 7 /a (deleted) (deleted)\n"
                             "4000-5000 r--p 0 fe:00 7 /not (deleted)x\n"
                             "5000-6000 r--p 0 fe:00 7  (deleted)\n");
    static const struct {
        const char *path;
        bool deleted;
    } wanted[] = {
        { "/gone", true },        { "/two\nlines\\\\ \\013", false },
        { "/a (deleted)", true }, { "/not (deleted)x", false },
        { "(deleted)", false },
    };
    assert_int_equal(maps.count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(maps.list[i].path, wanted[i].path);
        assert_int_equal(maps.list[i].deleted, wanted[i].deleted);
    }
}

static void test_senseless_lines_are_left_out(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "",
        "-",
        "1000-2000",
        "1000-2000 r--p",
        "1000 2000 r--p 0 0:0 0 /x",
        "2000-1000 r--p 0 0:0 0 /x",
        "1000-1000 r--p 0 0:0 0 /x",
        "1000-2000 w--p 0 0:0 0 /x",
        "1000-2000 r--q 0 0:0 0 /x",
        "1000-2000 r--p x 0:0 0 /x",
        "1000-2000 r--p 0 0:0 f /x",
        "1000-2000 r--p 0 0-0 0 /x",
        "1000-2000 r--p 0 0:0 0x",
        "1000-10000000000000000 r--p 0 0:0 0 /x",
        "1000-2000 r--p 0 0:0 18446744073709551616 /x",
        " 1000-2000 r--p 0 0:0 0 /x",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        CLEANUP(maps_done) struct maps maps = parse(lines[i]);
        assert_int_equal(maps.count, 0);
    }
}

static void test_order_is_kept(void **state)
{
    (void)state;
    CLEANUP(maps_done)
    struct maps maps = parse("3000-5000 r--p 0 0:0 0 /first\n"
                             "1000-2000 r--p 0 0:0 0 /back\n"
                             "4000-6000 r--p 0 0:0 0 /overlapping\n"
                             "5000-6000 r--p 0 0:0 0 /second\n");
    assert_int_equal(maps.count, 2);
    assert_string_equal(maps.list[0].path, "/first");
    assert_string_equal(maps.list[1].path, "/second");
}

static void test_nul_ends_a_line(void **state)
{
    (void)state;
    static const char text[] = "1000-2000 r--p 0 0:0 0 /a\0b\n3000-4000 r--p 0 0:0 0 /c\n";
    CLEANUP(maps_done) struct maps maps = { 0 };
    assert_int_equal(maps_parse(text, sizeof text - 1, &maps), 0);
    assert_int_equal(maps.count, 2);
    assert_string_equal(maps.list[0].path, "/a");
    assert_string_equal(maps.list[1].path, "/c");
}

static void test_find(void **state)
{
    (void)state;
    CLEANUP(maps_done)
    struct maps maps = parse("1000-2000 r--p 0 0:0 0 \n"
                             "2000-3000 r--p 0 0:0 0 \n"
                             "5000-6000 r--p 0 0:0 0 \n");
    assert_null(maps_find(&maps, 0xfff));
    assert_ptr_equal(maps_find(&maps, 0x1000), &maps.list[0]);
    assert_ptr_equal(maps_find(&maps, 0x1fff), &maps.list[0]);
    assert_ptr_equal(maps_find(&maps, 0x2000), &maps.list[1]);
    assert_null(maps_find(&maps, 0x3000));
    assert_ptr_equal(maps_find(&maps, 0x5fff), &maps.list[2]);
    assert_null(maps_find(&maps, 0x6000));

    CLEANUP(maps_done) struct maps none = parse("");
    assert_null(maps_find(&none, 0));
}

static void test_own_process(void **state)
{
    (void)state;
    AUTO_CLOSE int self = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(maps_done) struct maps maps = { 0 };
    assert_int_equal(maps_read(self, &maps), 0);

    char executable[PATH_MAX] = "";
    assert_true(readlink("/proc/self/exe", executable, sizeof executable - 1) > 0);
    const struct mapping *code = maps_find(&maps, (uintptr_t)test_own_process);
    assert_non_null(code);
    assert_true(code->executable);
    assert_string_equal(code->path, executable);
    const struct mapping *stack = maps_find(&maps, (uintptr_t)&maps);
    assert_non_null(stack);
    assert_true(stack->writable);
}

/* Longer than the buffer that the text is first read into. */
static void test_long_text(void **state)
{
    (void)state;
    struct fake_proc proc;
    fake_proc_init(&proc);
    enum { LINES = 5000 };
    FILE *file = fopen(fake_path(&proc, "maps"), "we");
    assert_non_null(file);
    for (unsigned i = 1; i <= LINES; i++)
        fprintf(file, "%x000-%x800 rw-p 00000000 fe:00 %u /some/where\n", i, i, i);
    fclose(file);

    CLEANUP(maps_done) struct maps maps = { 0 };
    assert_int_equal(maps_read(proc.fd, &maps), 0);
    assert_int_equal(maps.count, LINES);
    assert_int_equal(maps.list[LINES - 1].inode, LINES);
    fake_proc_done(&proc);
}

static void test_ended_process(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", child);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    struct maps maps;
    assert_int_equal(maps_read(fd, &maps), -ESRCH);
}

/* Root may read everything, so it takes another hat for this. */
static void test_denied(void **state)
{
    (void)state;
    struct fake_proc proc;
    fake_proc_init(&proc);
    fake_write(&proc, "maps", "", 0);
    chmod(fake_path(&proc, "maps"), 0);
    uid_t user = geteuid();
    struct maps maps;
    assert_int_equal(user ? 0 : seteuid(65534), 0);
    int error = maps_read(proc.fd, &maps);
    assert_int_equal(user ? 0 : seteuid(0), 0);
    assert_int_equal(error, -EPERM);
    fake_proc_done(&proc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_line),     cmocka_unit_test(test_lines_without_file),
        cmocka_unit_test(test_paths),         cmocka_unit_test(test_senseless_lines_are_left_out),
        cmocka_unit_test(test_order_is_kept), cmocka_unit_test(test_nul_ends_a_line),
        cmocka_unit_test(test_find),          cmocka_unit_test(test_own_process),
        cmocka_unit_test(test_long_text),     cmocka_unit_test(test_ended_process),
        cmocka_unit_test(test_denied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
