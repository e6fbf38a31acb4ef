/* Where a profile goes: to the file that a name stands for, and what stands in between stays. */
#define _GNU_SOURCE 1 /* pipe2 */
#include "sampler/app/save.h"
#include "sampler/base/cleanup.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

/* Each test has a folder of its own, is in it, and knows it as the temporary one. */
static int folder_enter(void **state)
{
    static char folder[] = "/tmp/scalene-save-XXXXXX";
    strcpy(strrchr(folder, '-') + 1, "XXXXXX");
    *state = folder;
    return !mkdtemp(folder) || chdir(folder) || mkdir("below", 0755) || setenv("TMPDIR", folder, 1);
}

static int folder_remove(void **state)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", (char *)*state);
    return chdir("/") || system(command);
}

static void save(const char *path, const char *text)
{
    char went_to[SAVE_PATH_SIZE];
    struct failure why = { 0 };
    assert_int_equal(save_check(path, &why), 0);
    assert_int_equal(save_text(path, text, strlen(text), went_to, &why), 0);
    assert_int_equal(why.code, 0);
    assert_string_equal(went_to, path);
}

static void assert_text(const char *path, const char *wanted)
{
    char text[64] = "";
    AUTO_FCLOSE FILE *file = fopen(path, "re");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    assert_string_equal(text, wanted);
}

static bool is_link(const char *path)
{
    struct stat found;
    assert_int_equal(lstat(path, &found), 0);
    return S_ISLNK(found.st_mode);
}

static uint64_t file_number(const char *path)
{
    struct stat found;
    assert_int_equal(stat(path, &found), 0);
    return found.st_ino;
}

static unsigned names_count(const char *folder)
{
    unsigned count = 0;
    AUTO_CLOSEDIR DIR *names = opendir(folder);
    assert_non_null(names);
    for (struct dirent *entry; (entry = readdir(names));)
        count += *entry->d_name != '.';
    return count;
}

static void test_file(void **state)
{
    (void)state;
    save("profile.json", "first");
    uint64_t first = file_number("profile.json");
    AUTO_CLOSE int kept = open("profile.json", O_RDONLY | O_CLOEXEC);
    assert_true(kept >= 0); /* and with it the number */
    save("profile.json", "2nd");
    assert_text("profile.json", "2nd");
    assert_true(file_number("profile.json") != first);
    assert_int_equal(names_count("."), 2);
}

/* To a file, to another link, from another folder, and to where nothing is yet. */
static void test_links(void **state)
{
    char whole[128];
    snprintf(whole, sizeof whole, "%s/below/real.json", (char *)*state);
    assert_int_equal(symlink(whole, "near.json"), 0);
    assert_int_equal(symlink("../near.json", "below/far.json"), 0);
    save("below/far.json", "first");
    assert_text("below/real.json", "first");
    AUTO_CLOSE int kept = open(whole, O_RDONLY | O_CLOEXEC);
    assert_true(kept >= 0);
    uint64_t first = file_number(whole);
    save("near.json", "2nd");
    assert_text("below/real.json", "2nd");
    assert_true(file_number(whole) != first);
    assert_true(is_link("near.json") && is_link("below/far.json") && !is_link(whole));
    assert_int_equal(names_count(".") + names_count("below"), 2 + 2);
}

/* Said before, and nothing is lost. */
static void check_fallback(const char *path, int error)
{
    char went_to[SAVE_PATH_SIZE];
    struct failure why = { 0 };
    assert_int_equal(save_check(path, &why), error);
    assert_int_equal(save_text(path, "text", 4, went_to, &why), 0);
    assert_int_equal(why.code, error);
    assert_text(went_to, "text");
    assert_true(is_link(path));
}

static void test_nowhere(void **state)
{
    (void)state;
    assert_int_equal(symlink("missing/profile.json", "lost.json"), 0);
    assert_int_equal(symlink("round.json", "round.json"), 0);
    assert_int_equal(symlink("below", "folder.json"), 0);
    check_fallback("lost.json", -ENOENT);
    check_fallback("round.json", -ELOOP);
    check_fallback("folder.json", -EISDIR);
}

/* As /dev/stdout is one, of a program whose output goes to a file or through a pipe. */
static void test_what_is_open(void **state)
{
    (void)state;
    char path[64], text[16] = "";
    int ends[2];
    AUTO_CLOSE int file = open("out", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(file, "before ", 7), 7);
    uint64_t number = file_number("out");
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    assert_int_equal(symlink(path, "link"), 0);
    save(path, "direct ");
    save("link", "linked");
    assert_text("out", "before direct linked");
    assert_true(file_number("out") == number && is_link("link"));
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[1]);
    save(path, "piped");
    assert_int_equal(read(ends[0], text, sizeof text), 5);
    assert_string_equal(text, "piped");
    close(ends[0]);
    close(ends[1]);
}

static void test_names(void **state)
{
    (void)state;
    char path[32];
    assert_int_equal(save_path_of("%p-%r%%", 12, 7, path, sizeof path), 0);
    assert_string_equal(path, "12-7%");
    assert_int_equal(save_path_of("%r", 12, -1, path, sizeof path), 0);
    assert_string_equal(path, "0");
    assert_int_equal(save_path_of("%p", 12, 7, path, 2), -ENAMETOOLONG);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_enter, folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_file),         IN_FOLDER(test_links), IN_FOLDER(test_nowhere),
        IN_FOLDER(test_what_is_open), IN_FOLDER(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
