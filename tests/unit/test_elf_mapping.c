/* The file behind a mapping: deleted, in another namespace, below another root, out of reach. */
#define _GNU_SOURCE 1 /* nftw */

#include "sampler/base/cleanup.h"
#include "symbols/elf_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/inotify.h>

#include "tests/unit/elf_image.h"
#include "tests/unit/fake_proc.h"

DEFINE_CLEANUP(struct elf_file *, elf_file_close)
#define AUTO_ELF CLEANUP(elf_file_closep) struct elf_file *

static const char MAPPED[] = "map_files/7f0000000000-7f0000001000";

static struct mapping mapping_of(const struct stat *status, const char *path)
{
    return (struct mapping){
        .start = 0x7f0000000000,
        .end = 0x7f0000001000,
        .device = status->st_dev,
        .inode = status->st_ino,
        .readable = true,
        .path = path,
    };
}

static void write_image(struct fake_proc *proc, const char *name, const char *symbol)
{
    static struct elf_image image;
    elf_image_make(&image, &(struct elf_plan){ .exported = { { symbol, 0x3100 } } });
    fake_write(proc, name, image.bytes, sizeof image.bytes);
}

/* Which of the files that write_image wrote was opened? */
static void assert_opens(struct fake_proc *proc, const struct mapping *mapping, const char *symbol)
{
    uint64_t value, size;
    AUTO_ELF file = NULL;
    assert_int_equal(elf_file_open_mapping(proc->fd, mapping, &file), 0);
    assert_int_equal(elf_file_find_exported(file, symbol, &value, &size), 0);
}

static void assert_not_opened(struct fake_proc *proc, const struct mapping *mapping, int wanted)
{
    struct elf_file *file = NULL;
    assert_int_equal(elf_file_open_mapping(proc->fd, mapping, &file), wanted);
    assert_null(file);
}

static int set_up(void **state)
{
    static struct fake_proc proc;
    fake_proc_init(&proc);
    *state = &proc;
    return 0;
}

static int tear_down(void **state)
{
    fake_proc_done(*state);
    return 0;
}

/* Deleted, renamed, in any namespace: the kernel's own link to what is mapped is always right. */
static void test_map_files_goes_first(void **state)
{
    struct fake_proc *proc = *state;
    write_image(proc, MAPPED, "mapped");
    write_image(proc, "root/lib/x.so", "below_root");
    struct stat status = fake_stat(proc, "root/lib/x.so");
    struct mapping mapping = mapping_of(&status, "/lib/x.so");
    assert_opens(proc, &mapping, "mapped");
}

static void test_another_mount_namespace(void **state)
{
    struct fake_proc *proc = *state;
    write_image(proc, "root/lib/x.so", "below_root");
    struct stat status = fake_stat(proc, "root/lib/x.so");
    struct mapping mapping = mapping_of(&status, "/lib/x.so");
    assert_opens(proc, &mapping, "below_root");
}

/* In our own mount namespace the maps show the path from our root, not from the target's. */
static void test_chroot_in_same_namespace(void **state)
{
    struct fake_proc *proc = *state;
    char path[PATH_MAX], below_root[2 * PATH_MAX];
    write_image(proc, "jail/lib/x.so", "as_it_stands");
    snprintf(path, sizeof path, "%s", fake_path(proc, "jail/lib/x.so"));
    struct stat status = fake_stat(proc, "jail/lib/x.so");
    struct mapping mapping = mapping_of(&status, path);
    assert_opens(proc, &mapping, "as_it_stands");

    snprintf(below_root, sizeof below_root, "root%s", path);
    write_image(proc, below_root, "another_file");
    assert_opens(proc, &mapping, "as_it_stands");
}

static void test_deleted_executable(void **state)
{
    struct fake_proc *proc = *state;
    write_image(proc, "exe", "executable");
    struct stat status = fake_stat(proc, "exe");
    struct mapping mapping = mapping_of(&status, "/bin/gone");
    assert_opens(proc, &mapping, "executable");
}

static void test_another_file_of_that_name(void **state)
{
    struct fake_proc *proc = *state;
    write_image(proc, "root/lib/x.so", "new");
    write_image(proc, "old", "old");
    struct stat status = fake_stat(proc, "old");
    struct mapping mapping = mapping_of(&status, "/lib/x.so");
    assert_not_opened(proc, &mapping, -ENOENT);
}

/* The inode's number alone is not enough: where devices have numbers, they must agree. */
static void test_another_device(void **state)
{
    struct fake_proc *proc = *state;
    struct stat status;
    assert_int_equal(stat("/proc/self/exe", &status), 0);
    fake_link(proc, "exe", "/proc/self/exe");
    struct mapping mapping = mapping_of(&status, "/bin/gone");
    mapping.device = makedev(major(status.st_dev) + 1, 0);
    assert_not_opened(proc, &mapping, major(status.st_dev) ? -ENOENT : 0);
}

/* Not even for a moment: that alone may have effects. */
static void test_pipes_and_devices_are_not_opened(void **state)
{
    struct fake_proc *proc = *state;
    struct inotify_event event;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", fake_path(proc, "pipe"));
    assert_int_equal(mkfifo(path, 0600), 0);
    AUTO_CLOSE int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(inotify_add_watch(watch, path, IN_OPEN) >= 0);
    fake_link(proc, MAPPED, "/dev/zero");
    struct stat status = fake_stat(proc, "pipe");
    struct mapping mapping = mapping_of(&status, path);
    assert_not_opened(proc, &mapping, -ENOENT);
    assert_int_equal(read(watch, &event, sizeof event), -1);
    assert_int_equal(errno, EAGAIN);
}

static void test_no_file(void **state)
{
    struct fake_proc *proc = *state;
    struct mapping mapping = mapping_of(&(struct stat){ 0 }, "[heap]");
    assert_not_opened(proc, &mapping, -ENOENT);
}

static void test_no_elf(void **state)
{
    struct fake_proc *proc = *state;
    fake_write(proc, MAPPED, "#!/bin/sh\n", 10);
    struct stat status = fake_stat(proc, MAPPED);
    struct mapping mapping = mapping_of(&status, "/bin/script");
    assert_not_opened(proc, &mapping, -EBADMSG);
}

/* Root may read everything, so it takes another hat for this. */
static void test_denied(void **state)
{
    struct fake_proc *proc = *state;
    write_image(proc, "root/lib/x.so", "below_root");
    struct stat status = fake_stat(proc, "root/lib/x.so");
    struct mapping mapping = mapping_of(&status, "/lib/x.so");
    chmod(fake_path(proc, "root/lib/x.so"), 0);
    struct elf_file *file = NULL;
    uid_t user = geteuid();
    assert_int_equal(user ? 0 : seteuid(65534), 0);
    int error = elf_file_open_mapping(proc->fd, &mapping, &file);
    assert_int_equal(user ? 0 : seteuid(0), 0);
    assert_int_equal(error, -EPERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_map_files_goes_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_mount_namespace, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_chroot_in_same_namespace, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_deleted_executable, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_file_of_that_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_device, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pipes_and_devices_are_not_opened, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_elf, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_denied, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
