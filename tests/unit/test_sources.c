/* Source files through a target's root folder: found, missing, hostile; members of zip archives;
 * and no file that the target's user may not read. */
#define _GNU_SOURCE 1 /* nftw */
#include "sampler/app/sources.h"

#include "sampler/base/error.h"
#include "tests/unit/zip_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/fake_proc.h"
#include "tests/unit/skipped.h"

static void proc_init(struct fake_proc *proc, unsigned user)
{
    char status[64];
    int size = snprintf(status, sizeof status, "Name:\tpython\nUid:\t%u\t0\t0\t0\nGid:\t%u\t0\n",
                        user, user);
    fake_proc_init(proc);
    assert_int_equal(chmod(proc->folder, 0755), 0);
    fake_write(proc, "status", status, (size_t)size);
    fake_write(proc, "root/app/main.py", "x = 1\n", 6);
}

static void assert_source(struct sources *sources, const char *file, const char *want)
{
    struct source source = { 0 };
    struct source_reader *reader = sources_reader(sources);
    assert_int_equal(reader->read(reader, file, &source), 0);
    AUTO_FREE char *bytes = source.bytes;
    assert_int_equal(source.size, strlen(want));
    assert_memory_equal(bytes, want, source.size);
    assert_true(source.modified_s > 1e9);
}

static void assert_no_source(struct sources *sources, const char *file, int want)
{
    struct source source = { 0 };
    struct source_reader *reader = sources_reader(sources);
    assert_int_equal(reader->read(reader, file, &source), want);
    assert_null(source.bytes);
}

static void test_root(void **state)
{
    struct fake_proc proc;
    AUTO_SOURCES struct sources *sources = NULL;
    (void)state;
    proc_init(&proc, getuid());
    fake_link(&proc, "root/app/absolute.py", "/app/main.py");
    fake_link(&proc, "root/app/upwards.py", "../../../../app/main.py");
    fake_link(&proc, "root/app/outside.py", "/etc/passwd");
    fake_link(&proc, "root/app/round.py", "round.py");
    assert_int_equal(sources_new(&sources), 0);
    assert_int_equal(sources_add_process(sources, proc.fd), 0);
    assert_int_equal(sources_add_process(sources, proc.fd), 0);

    assert_source(sources, "/app/main.py", "x = 1\n");
    assert_source(sources, "/app/absolute.py", "x = 1\n");
    assert_source(sources, "/app/upwards.py", "x = 1\n");
    assert_source(sources, "/../app/main.py", "x = 1\n");
    assert_no_source(sources, "/app/outside.py", -ENOENT);
    assert_no_source(sources, "/app/round.py", -ELOOP);
    assert_no_source(sources, "/etc/passwd", -ENOENT);
    assert_no_source(sources, "/app/other.py", -ENOENT);
    assert_no_source(sources, "/app", -EISDIR);
    assert_no_source(sources, "/", -EISDIR);
    assert_no_source(sources, "<string>", -ENOENT);
    assert_no_source(sources, "app/main.py", -ENOENT);
    assert_no_source(sources, "", -ENOENT);
    fake_proc_done(&proc);
}

/* The first root that has it gives it; without any, ours does. */
static void test_roots(void **state)
{
    struct fake_proc first, second;
    char path[512];
    AUTO_SOURCES struct sources *sources = NULL;
    (void)state;
    proc_init(&first, getuid());
    proc_init(&second, getuid());
    fake_write(&second, "root/app/main.py", "x = 2\n", 6);
    fake_write(&second, "root/app/own.py", "x = 3\n", 6);
    assert_int_equal(sources_new(&sources), 0);
    snprintf(path, sizeof path, "%s/root/app/own.py", second.folder);
    assert_source(sources, path, "x = 3\n");

    assert_int_equal(sources_add_process(sources, first.fd), 0);
    assert_int_equal(sources_add_process(sources, second.fd), 0);
    assert_source(sources, "/app/main.py", "x = 1\n");
    assert_source(sources, "/app/own.py", "x = 3\n");
    assert_no_source(sources, path, -ENOENT);
    fake_proc_done(&first);
    fake_proc_done(&second);
}

/* Opening one of these would wait, or do something. */
static void test_no_files(void **state)
{
    struct fake_proc proc;
    AUTO_SOURCES struct sources *sources = NULL;
    (void)state;
    proc_init(&proc, getuid());
    assert_int_equal(mkfifo(fake_path(&proc, "root/app/pipe.py"), 0644), 0);
    fake_write(&proc, "root/app/huge.py", "x", 1);
    assert_int_equal(truncate(fake_path(&proc, "root/app/huge.py"), SOURCE_SIZE_LIMIT + 1), 0);
    assert_int_equal(sources_new(&sources), 0);
    assert_int_equal(sources_add_process(sources, proc.fd), 0);
    assert_no_source(sources, "/app/pipe.py", -EISDIR);
    assert_no_source(sources, "/app/huge.py", -EFBIG);
    fake_proc_done(&proc);
}

static void test_zip(void **state)
{
    static struct zip_image zip;
    struct fake_proc proc;
    AUTO_SOURCES struct sources *sources = NULL;
    (void)state;
    zip_image_begin(&zip, "#!/usr/bin/env python3\n");
    zip_image_add(&zip, "__main__.py", "main()\n", 0);
    zip_image_add(&zip, "pkg/mod.py", "y = 1\n", 1);
    zip_image_end(&zip, "");
    proc_init(&proc, getuid());
    fake_write(&proc, "root/app/app.pyz", zip.bytes, zip.size);
    assert_int_equal(sources_new(&sources), 0);
    assert_int_equal(sources_add_process(sources, proc.fd), 0);
    assert_source(sources, "/app/app.pyz/__main__.py", "main()\n");
    assert_source(sources, "/app/app.pyz/pkg/mod.py", "y = 1\n");
    assert_no_source(sources, "/app/app.pyz/pkg/other.py", -ENOENT);
    assert_no_source(sources, "/app/main.py/pkg/mod.py", -EBADMSG);
    assert_no_source(sources, "/app/none.pyz/pkg/mod.py", -ENOENT);
    fake_proc_done(&proc);
}

/* A target names its files: what root can read is not shown to whoever runs the target. */
static void test_rights(void **state)
{
    enum { NOBODY = 65534 };
    struct fake_proc proc;
    AUTO_SOURCES struct sources *sources = NULL;
    (void)state;
    if (getuid() != 0)
        SKIP("needs root to be refused what another user may not read");
    proc_init(&proc, NOBODY);
    fake_write(&proc, "root/app/secret.py", "x = 2\n", 6);
    assert_int_equal(chmod(fake_path(&proc, "root/app/secret.py"), 0600), 0);
    assert_int_equal(sources_new(&sources), 0);
    assert_int_equal(sources_add_process(sources, proc.fd), 0);
    assert_source(sources, "/app/main.py", "x = 1\n");
    assert_no_source(sources, "/app/secret.py", -EACCES);
    assert_int_equal(chown(fake_path(&proc, "root/app/secret.py"), NOBODY, NOBODY), 0);
    assert_source(sources, "/app/secret.py", "x = 2\n");
    fake_write(&proc, "root/app/ours.py", "x = 3\n", 6); /* our rights are ours again */
    assert_int_equal(fake_stat(&proc, "root/app/ours.py").st_uid, 0);
    fake_proc_done(&proc);
}

static void test_live(void **state)
{
    AUTO_SOURCES struct sources *sources = NULL;
    AUTO_CLOSE int proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)state;
    assert_int_equal(sources_new(&sources), 0);
    assert_int_equal(sources_add_process(sources, proc_fd), 0);
    struct source source = { 0 };
    struct source_reader *reader = sources_reader(sources);
    assert_int_equal(reader->read(reader, __FILE__, &source), 0);
    AUTO_FREE char *bytes = source.bytes;
    assert_memory_equal(bytes, "/* Source files", 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_root), cmocka_unit_test(test_roots),  cmocka_unit_test(test_no_files),
        cmocka_unit_test(test_zip),  cmocka_unit_test(test_rights), cmocka_unit_test(test_live),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
