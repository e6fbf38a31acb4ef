/*
 * Separate debug files, made of this program by objcopy: by build id and by link, in every place
 * where they may lie, and what is not taken for one although it lies there.
 */
#define _GNU_SOURCE 1 /* nftw */
#include "symbols/debug_file.h"

#include "sampler/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdint.h>

#include "tests/unit/fake_proc.h"

#define OBJECT_PATH "/opt/scalene-attach/program"
#define BESIDE "root/opt/scalene-attach/program.debug"

enum { NOTE_SIZE = 36, ID_AT = 16 }; /* elf(5): three words, "GNU", and a SHA-1 */

DEFINE_CLEANUP(struct elf_file *, elf_file_close)
#define AUTO_ELF CLEANUP(elf_file_closep) struct elf_file
#define AUTO_PROC CLEANUP(fake_proc_done) struct fake_proc

/* What objcopy makes, once: debug files and the objects they belong to. */
static struct fake_proc made;
static char id[2 * (NOTE_SIZE - ID_AT) + 1];

void marked_function(void);
void marked_function(void)
{
}

static void run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *format, ...)
{
    char words[2048], command[2304];
    va_list list;
    va_start(list, format);
    assert_in_range(vsnprintf(words, sizeof words, format, list), 1, sizeof words - 1);
    va_end(list);
    snprintf(command, sizeof command, "cd '%s' && objcopy %s", made.folder, words);
    assert_int_equal(system(command), 0);
}

/* The id as text, and a note with another one. */
static void note_change(void)
{
    unsigned char note[NOTE_SIZE + 1];
    AUTO_CLOSE int fd = open(fake_path(&made, "note"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, note, sizeof note), NOTE_SIZE);
    for (int i = ID_AT; i < NOTE_SIZE; i++)
        snprintf(id + 2 * (i - ID_AT), 3, "%02x", note[i]);
    note[NOTE_SIZE - 1] ^= 1;
    fake_write(&made, "note", note, NOTE_SIZE);
}

static void object_make_with_link(const char *name, const char *link)
{
    char bytes[64] = { 0 };
    size_t size = (strlen(link) + 4) / 4 * 4;
    memcpy(bytes, link, strlen(link));
    fake_write(&made, "link", bytes, size + 4);
    run("--add-section .gnu_debuglink=link bare %s", name);
}

static int make(void **state)
{
    char self[PATH_MAX] = "";
    (void)state;
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    fake_proc_init(&made);
    run("--only-keep-debug '%s' program.debug", self);
    run("--dump-section .note.gnu.build-id=note program.debug scratch");
    note_change();
    run("--update-section .note.gnu.build-id=note program.debug other");
    run("--remove-section .note.gnu.build-id program.debug anonymous.debug");
    run("--add-section .more=note program.debug changed");
    run("--strip-all '%s' bare", self);
    run("--add-gnu-debuglink=program.debug bare linked");
    run("--remove-section .note.gnu.build-id linked anonymous");
    object_make_with_link("slashed", "below/program.debug");
    object_make_with_link("climbing", "../scalene-attach/program.debug");
    return 0;
}

static int unmake(void **state)
{
    (void)state;
    fake_proc_done(&made);
    return 0;
}

/* One of the made files lies there. */
static void lay(struct fake_proc *proc, const char *place, const char *file)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", made.folder, file);
    fake_link(proc, place, path);
}

static void lay_by_id(struct fake_proc *proc, const char *file)
{
    char place[256];
    snprintf(place, sizeof place, "root/usr/lib/debug/.build-id/%.2s/%s.debug", id, id + 2);
    lay(proc, place, file);
}

static int look_from(struct fake_proc *proc, const char *object_path, const char *name)
{
    uint64_t value, size;
    AUTO_ELF *object = NULL, *debug = NULL;
    AUTO_CLOSE int fd = open(fake_path(&made, name), O_RDONLY | O_CLOEXEC);
    assert_int_equal(elf_file_open_fd(fd, &object), 0);
    assert_int_equal(elf_file_find_symbol(object, "marked_function", &value, &size), -ENOENT);
    int error = debug_file_open(proc->fd, object_path, object, &debug);
    assert_int_equal(debug == NULL, error != 0);
    if (debug)
        assert_int_equal(elf_file_find_symbol(debug, "marked_function", &value, &size), 0);
    return error;
}

static int look(struct fake_proc *proc, const char *object)
{
    return look_from(proc, OBJECT_PATH, object);
}

static void test_by_build_id(void **state)
{
    (void)state;
    AUTO_PROC proc;
    fake_proc_init(&proc);
    assert_int_equal(look(&proc, "bare"), -ENOENT);
    lay_by_id(&proc, "program.debug");
    assert_int_equal(look(&proc, "bare"), 0);
    assert_int_equal(look(&proc, "linked"), 0);
    assert_int_equal(look_from(&proc, "no path", "bare"), 0);
}

static const char *const link_places[] = {
    BESIDE,
    "root/opt/scalene-attach/.debug/program.debug",
    "root/usr/lib/debug/opt/scalene-attach/program.debug",
};

/* In each place, to which the link alone leads. */
static void test_by_link(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof link_places / sizeof *link_places; i++) {
        AUTO_PROC proc;
        fake_proc_init(&proc);
        lay(&proc, link_places[i], "program.debug");
        assert_int_equal(look(&proc, "linked"), 0);
        assert_int_equal(look(&proc, "bare"), -ENOENT);
    }
}

/* As of the vdso, or of what was deleted: no path below the root. */
static void test_object_without_a_path(void **state)
{
    (void)state;
    AUTO_PROC proc;
    fake_proc_init(&proc);
    lay(&proc, "rootopt/program.debug", "program.debug");
    assert_int_equal(look_from(&proc, "opt/program", "linked"), -ENOENT);
}

static void test_elsewhere(void **state)
{
    (void)state;
    static const char *const places[] = {
        "root/opt/program.debug",
        "root/usr/lib/debug/program.debug",
        "opt/scalene-attach/program.debug",
        "root/opt/scalene-attach/other.debug",
    };
    AUTO_PROC proc;
    fake_proc_init(&proc);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        lay(&proc, places[i], "program.debug");
    assert_int_equal(look(&proc, "linked"), -ENOENT);
}

/* A link leads to a name, not along a path of its own choice. */
static void test_link_with_a_slash(void **state)
{
    (void)state;
    AUTO_PROC proc;
    fake_proc_init(&proc);
    lay(&proc, BESIDE, "program.debug");
    lay(&proc, "root/opt/scalene-attach/below/program.debug", "program.debug");
    assert_int_equal(look(&proc, "linked"), 0);
    assert_int_equal(look(&proc, "slashed"), -ENOENT);
    assert_int_equal(look(&proc, "climbing"), -ENOENT);
}

/* Of another build, without an id, no ELF file, a pipe that nobody writes to. */
static void test_not_of_this_object(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof link_places / sizeof *link_places; i++) {
        static const char *const strangers[] = { "other", "anonymous.debug", "note" };
        for (size_t j = 0; j < sizeof strangers / sizeof *strangers; j++) {
            AUTO_PROC proc;
            fake_proc_init(&proc);
            lay(&proc, link_places[i], strangers[j]);
            lay_by_id(&proc, strangers[j]);
            assert_int_equal(look(&proc, "linked"), -ENOENT);
        }
        AUTO_PROC proc;
        fake_proc_init(&proc);
        assert_int_equal(mkfifo(fake_path(&proc, link_places[i]), 0600), 0);
        assert_int_equal(look(&proc, "linked"), -ENOENT);
    }
}

/* A stranger in one place does not hide the right one in another. */
static void test_behind_a_stranger(void **state)
{
    (void)state;
    AUTO_PROC proc;
    fake_proc_init(&proc);
    lay_by_id(&proc, "other");
    lay(&proc, link_places[0], "other");
    lay(&proc, link_places[1], "note");
    assert_int_equal(look(&proc, "linked"), -ENOENT);
    lay(&proc, link_places[2], "program.debug");
    assert_int_equal(look(&proc, "linked"), 0);
}

/* The build id proves it, whatever the link's checksum says; without one nothing does. */
static void test_checksum_proves_nothing(void **state)
{
    (void)state;
    AUTO_PROC proc;
    fake_proc_init(&proc);
    lay(&proc, BESIDE, "changed");
    assert_int_equal(look(&proc, "linked"), 0);
    AUTO_PROC unproven;
    fake_proc_init(&unproven);
    lay(&unproven, BESIDE, "program.debug");
    assert_int_equal(look(&unproven, "anonymous"), -ENOENT);
    AUTO_PROC both;
    fake_proc_init(&both);
    lay(&both, BESIDE, "anonymous.debug");
    assert_int_equal(look(&both, "anonymous"), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_build_id),
        cmocka_unit_test(test_by_link),
        cmocka_unit_test(test_object_without_a_path),
        cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_link_with_a_slash),
        cmocka_unit_test(test_not_of_this_object),
        cmocka_unit_test(test_behind_a_stranger),
        cmocka_unit_test(test_checksum_proves_nothing),
    };
    return cmocka_run_group_tests(tests, make, unmake);
}
