/* The verb `view`: a profile saved and read gives the same table; bad files their sentence. */
#define _GNU_SOURCE 1 /* nftw */

#include "sampler/app/view.h"

#include "output/json/profile_json.h"
#include "sampler/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/fake_proc.h"
#include "tests/unit/golden.h"
#include "tests/unit/sample_report.h"

static struct fake_proc folder;

static int set_up(void **state)
{
    (void)state;
    fake_proc_init(&folder);
    setenv("NO_COLOR", "1", 1);
    setenv("COLUMNS", "80", 1);
    return fchdir(folder.fd);
}

static int tear_down(void **state)
{
    (void)state;
    fake_proc_done(&folder);
    return chdir("/");
}

static void report_save(const char *name)
{
    AUTO_FCLOSE FILE *into = fopen(fake_path(&folder, name), "we");
    assert_non_null(into);
    assert_int_equal(profile_json_write(&sample_report, into), 0);
}

/* Runs the verb with standard output going to `path`. */
static int view_into(const char *path, const char *file, bool reduced, struct failure *why)
{
    const struct view_request request = {
        .file = file,
        .version = "0.1.0",
        .reduced = reduced,
        .cpu_percent_threshold = 1,
        .malloc_threshold = 100,
    };
    AUTO_CLOSE int saved = dup(STDOUT_FILENO);
    AUTO_CLOSE int into = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    fflush(stdout);
    assert_true(dup2(into, STDOUT_FILENO) >= 0);
    int error = view_run(&request, why);
    fflush(stdout);
    clearerr(stdout);
    assert_true(dup2(saved, STDOUT_FILENO) >= 0);
    return error;
}

static void assert_table(const char *file, bool reduced, const char *golden)
{
    struct failure why = { .text = "" };
    AUTO_FREE char *text = NULL;
    size_t size = 0;
    assert_int_equal(view_into("out", file, reduced, &why), 0);
    assert_string_equal(why.text, "");
    AUTO_FCLOSE FILE *out = fopen("out", "re");
    assert_true(getdelim(&text, &size, '\0', out) > 0);
    assert_golden(golden, text);
}

static void assert_refused(const char *file, int error, const char *told)
{
    struct failure why = { .text = "" };
    assert_int_equal(view_into("out", file, false, &why), error);
    if (!strstr(why.text, told))
        fail_msg("\"%s\" is not told: %s", told, why.text);
}

static void test_saved_and_read_again(void **state)
{
    (void)state;
    report_save(VIEW_USUAL_FILE);
    assert_table(NULL, false, "table/plain_80.txt");
    assert_table(VIEW_USUAL_FILE, true, "table/reduced_80.txt");
}

static void test_no_such_file(void **state)
{
    (void)state;
    assert_refused(NULL, -ENOENT, "there is no scalene-profile.json here");
    assert_refused("other.json", -ENOENT, "other.json cannot be read: No such file");
    assert_refused(".", -EISDIR, ". cannot be read: Is a directory");
}

static void test_no_profile(void **state)
{
    (void)state;
    fake_write(&folder, "bad.json", "hello", 5);
    assert_refused("bad.json", -EBADMSG, "bad.json");
    fake_write(&folder, "bad.json", "", 0);
    assert_refused("bad.json", -EBADMSG, "bad.json");
    fake_write(&folder, "bad.json", "{\"files\": {}", 12);
    assert_refused("bad.json", -EBADMSG, "bad.json");
}

static void test_output_is_full(void **state)
{
    (void)state;
    struct failure why = { .text = "" };
    report_save("full.json");
    assert_int_equal(view_into("/dev/full", "full.json", false, &why), -EIO);
    assert_string_equal(why.text, "standard output cannot be written: No space left on device");
}

#define VIEW_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        VIEW_TEST(test_saved_and_read_again),
        VIEW_TEST(test_no_such_file),
        VIEW_TEST(test_no_profile),
        VIEW_TEST(test_output_is_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
