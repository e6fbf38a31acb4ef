/* The verb `view`: a profile saved and read gives the same table; bad files their sentence. */
#define _GNU_SOURCE 1 /* nftw, pipe2 */

#include "sampler/app/view.h"

#include "output/json/profile_json.h"
#include "sampler/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
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

static struct view_request request_of(const char *file)
{
    return (struct view_request){
        .file = file,
        .version = "0.1.0",
        .cpu_percent_threshold = 1,
        .malloc_threshold = 100,
    };
}

/* Runs the verb with standard output going to the descriptor. */
static int view_onto(int into, const struct view_request *request, struct failure *why)
{
    AUTO_CLOSE int saved = dup(STDOUT_FILENO);
    fflush(stdout);
    assert_true(dup2(into, STDOUT_FILENO) >= 0);
    int error = view_run(request, why);
    fflush(stdout);
    clearerr(stdout);
    assert_true(dup2(saved, STDOUT_FILENO) >= 0);
    return error;
}

static int view_into(const char *path, const struct view_request *request, struct failure *why)
{
    AUTO_CLOSE int into = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(into >= 0);
    return view_onto(into, request, why);
}

static void assert_view(const struct view_request *request, const char *golden)
{
    struct failure why = { .text = "" };
    AUTO_FREE char *text = NULL;
    size_t size = 0;
    assert_int_equal(view_into("out", request, &why), 0);
    assert_string_equal(why.text, "");
    AUTO_FCLOSE FILE *out = fopen("out", "re");
    assert_true(getdelim(&text, &size, '\0', out) > 0);
    assert_golden(golden, text);
}

static void assert_refused(const char *file, int error, const char *told)
{
    const struct view_request request = request_of(file);
    struct failure why = { .text = "" };
    assert_int_equal(view_into("out", &request, &why), error);
    if (!strstr(why.text, told))
        fail_msg("\"%s\" is not told: %s", told, why.text);
}

static void test_saved_and_read_again(void **state)
{
    (void)state;
    struct view_request request = request_of(NULL);
    report_save(VIEW_USUAL_FILE);
    assert_view(&request, "table/plain_80.txt");
    request.file = VIEW_USUAL_FILE;
    request.reduced = true;
    assert_view(&request, "table/reduced_80.txt");
}

/* Scalene's own: what it does not know is not there, neither as zero nor as an empty row. */
static void test_scalene_profile(void **state)
{
    (void)state;
    char path[1024];
    snprintf(path, sizeof path, "%.*s/../golden/view/scalene_2.4.json",
             (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__);
    struct view_request request = request_of(path);
    assert_view(&request, "view/scalene_80.txt");
    request.selection.sort = column_find("n_peak_mb");
    request.json = true;
    assert_view(&request, "view/scalene_peak.json");
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
    const struct view_request request = request_of("full.json");
    report_save("full.json");
    assert_int_equal(view_into("/dev/full", &request, &why), -EIO);
    assert_string_equal(why.text, "standard output cannot be written: No space left on device");
}

/* Who reads no further, as `head` and a pager that was left, is told nothing. */
static void test_output_is_closed(void **state)
{
    (void)state;
    struct failure why = { .text = "" };
    const struct view_request request = request_of("closed.json");
    int ends[2];
    report_save("closed.json");
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    AUTO_CLOSE int into = ends[1];
    void (*usual)(int) = signal(SIGPIPE, SIG_IGN);
    assert_int_equal(view_onto(into, &request, &why), 0);
    signal(SIGPIPE, usual);
    assert_string_equal(why.text, "");
}

#define VIEW_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        VIEW_TEST(test_saved_and_read_again), VIEW_TEST(test_no_such_file),
        VIEW_TEST(test_no_profile),           VIEW_TEST(test_output_is_full),
        VIEW_TEST(test_output_is_closed),     VIEW_TEST(test_scalene_profile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
