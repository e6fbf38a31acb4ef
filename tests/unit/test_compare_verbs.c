/* The verbs that take several profiles: merge leaves a whole profile or none, diff tells by its
 * status, and both refuse what they cannot use with one sentence. */
#define _GNU_SOURCE 1 /* nftw */

#include "output/json/profile_json.h"
#include "sampler/app/diff.h"
#include "sampler/app/merge.h"
#include "sampler/app/page_file.h"
#include "sampler/app/report_load.h"
#include "sampler/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/fake_proc.h"
#include "tests/unit/sample_pair.h"

DEFINE_CLEANUP(struct report *, report_free)
#define AUTO_REPORT CLEANUP(report_freep)

static struct fake_proc folder;

static const char scalene_profile[] =
    "{\"files\": {\"/a.py\": {\"percent_cpu_time\": 100, \"lines\": [{\"lineno\": 1, \"line\": "
    "\"work()\", \"n_cpu_percent_python\": 50}]}}, \"elapsed_time_sec\": 4}";

static void report_save(const char *name, const struct report *report)
{
    AUTO_FCLOSE FILE *into = fopen(fake_path(&folder, name), "we");
    assert_non_null(into);
    assert_int_equal(profile_json_write(report, into), 0);
}

static int set_up(void **state)
{
    (void)state;
    fake_proc_init(&folder);
    setenv("NO_COLOR", "1", 1);
    setenv("COLUMNS", "80", 1);
    pair_set_memory();
    report_save("old.json", &pair_old);
    report_save("new.json", &pair_new);
    fake_write(&folder, "scalene.json", scalene_profile, strlen(scalene_profile));
    return fchdir(folder.fd);
}

static int tear_down(void **state)
{
    (void)state;
    fake_proc_done(&folder);
    return chdir("/");
}

static bool is_there(const char *name)
{
    return access(name, F_OK) == 0;
}

/* ---- merge ---- */

#define MERGE(ret_why, out, ...)                                                                   \
    merge_run(                                                                                     \
        &(const struct merge_request){ (out), (char *[]){ __VA_ARGS__, NULL }, "0.1.0", true },    \
        (ret_why))

static void test_merge(void **state)
{
    (void)state;
    struct failure why = { .text = "" };
    AUTO_REPORT struct report *merged = NULL;
    assert_int_equal(MERGE(&why, "all.json", "old.json", "new.json", "new.json"), 0);
    assert_int_equal(report_load("all.json", "0.1.0", &merged, &why), 0);
    assert_float_equal(merged->totals.cpu_python_s, 5.875 + 2 * 7.5, 1e-6);
    assert_string_equal(merged->profiler_version, "0.1.0");
    assert_int_equal(MERGE(&why, "all.json", "all.json", "old.json"), 0); /* into one of them */
    AUTO_REPORT struct report *again = NULL;
    assert_int_equal(report_load("all.json", "0.1.0", &again, &why), 0);
    assert_float_equal(again->totals.cpu_python_s, 2 * 5.875 + 2 * 7.5, 1e-6);
}

#define ASSERT_MERGE_REFUSED(error, says, ...)                                                     \
    do {                                                                                           \
        struct failure why_ = { .text = "" };                                                      \
        assert_int_equal(MERGE(&why_, "kept.json", __VA_ARGS__), error);                           \
        if (!strstr(why_.text, says))                                                              \
            fail_msg("\"%s\" is not told: %s", says, why_.text);                                   \
    } while (0)

/* What was there stays there, whichever of them is bad. */
static void test_merge_refused(void **state)
{
    (void)state;
    report_save("kept.json", &pair_old);
    fake_write(&folder, "cut.json", "{\"files\": {", 11);
    ASSERT_MERGE_REFUSED(-EBADMSG, "cut.json is truncated", "old.json", "cut.json");
    ASSERT_MERGE_REFUSED(-ENOENT, "none.json cannot be read", "none.json", "old.json");
    ASSERT_MERGE_REFUSED(-ENOTSUP, "scalene.json was not written by scalene-attach", "old.json",
                         "scalene.json");
    AUTO_REPORT struct report *kept = NULL;
    struct failure why = { .text = "" };
    assert_int_equal(report_load("kept.json", "0.1.0", &kept, &why), 0);
    assert_float_equal(kept->totals.cpu_python_s, 5.875, 1e-6);
}

static void test_merge_nowhere(void **state)
{
    (void)state;
    struct failure why = { .text = "" };
    assert_int_equal(MERGE(&why, "no/such.json", "old.json", "new.json"), -ENOENT);
    assert_non_null(strstr(why.text, "no/such.json"));
}

/* ---- diff ---- */

/* Runs the verb with standard output and standard error going to files. */
static int diff_into(const struct diff_request *request, int *ret_status, struct failure *why)
{
    AUTO_CLOSE int saved_out = dup(STDOUT_FILENO), saved_err = dup(STDERR_FILENO);
    AUTO_CLOSE int out = open("out", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    AUTO_CLOSE int err = open("err", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    fflush(stdout);
    assert_true(dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0);
    int error = diff_run(request, ret_status, why);
    fflush(stdout);
    assert_true(dup2(saved_out, STDOUT_FILENO) >= 0 && dup2(saved_err, STDERR_FILENO) >= 0);
    return error;
}

static char *file_text(const char *name)
{
    char *text = NULL;
    size_t size = 0;
    AUTO_FCLOSE FILE *file = fopen(name, "re");
    assert_non_null(file);
    return getdelim(&text, &size, '\0', file) < 0 ? strcpy(realloc(text, 1), "") : text;
}

static struct diff_request request_of(const char *limits)
{
    return (struct diff_request){ .old_file = "old.json",
                                  .new_file = "new.json",
                                  .version = "0.1.0",
                                  .limits = limits,
                                  .top = 3 };
}

static void check_diff(const struct diff_request *request, int status, const char *shown,
                       const char *told)
{
    struct failure why = { .text = "" };
    int got = -1;
    assert_int_equal(diff_into(request, &got, &why), 0);
    AUTO_FREE char *out = file_text("out"), *err = file_text("err");
    assert_int_equal(got, status);
    if (!strstr(out, shown) || !strstr(err, told))
        fail_msg("not \"%s\", \"%s\":\n%s\n%s", shown, told, out, err);
}

static void test_diff(void **state)
{
    (void)state;
    struct diff_request request = request_of(NULL);
    check_diff(&request, 0, "Lines, by time", "");
    check_diff(&request, 0, "and 4 more, which changed less", "");
    request.json = true;
    check_diff(&request, 0, "\"significant\": true", "");
    request.output = "-";
    check_diff(&request, 0, "\"significant\": true", "");
    request.json = false;
    request.html = true;
    check_diff(&request, 0, "<!DOCTYPE html>", "");
    assert_false(is_there("-"));
}

static size_t rows_count(const struct diff_request *request)
{
    size_t count = 0;
    check_diff(request, 0, "", "");
    AUTO_FREE char *out = file_text("out");
    for (const char *at = out; (at = strstr(at, "\"state\":")); at++)
        count++;
    return count;
}

/* JSON has all, if nothing is said, and a table the ten that changed most; else each has so many.
 */
static void test_top(void **state)
{
    (void)state;
    struct diff_request request = request_of(NULL);
    size_t most = 0;
    request.top = -1;
    request.json = true;
    most = rows_count(&request);
    assert_true(most > 6);
    request.top = 0;
    assert_int_equal(rows_count(&request), most);
    request.top = 1;
    assert_int_equal(rows_count(&request), 3); /* a file, a function, a line */
    request.json = false;
    check_diff(&request, 0, "more, which changed less", "");
    request.top = 0;
    check_diff(&request, 0, "Lines, by time", "");
    AUTO_FREE char *out = file_text("out");
    assert_null(strstr(out, "more, which changed less"));
}

static void test_limits(void **state)
{
    (void)state;
    struct diff_request request = request_of("python>+1%,cpu<-50%,memory>+50MB");
    check_diff(&request, 1, "Lines, by time", "python>+1%: Python went from 5.88s to 7.50s");
    check_diff(&request, 1, "", "memory>+50MB: memory peak went from 100M to 164M");
    AUTO_FREE char *err = file_text("err");
    assert_null(strstr(err, "cpu<-50%"));
    request.limits = "idle>+1%";
    check_diff(&request, 0, "Lines, by time", "");
}

static void check_diff_refused(const struct diff_request *request, int error, const char *says)
{
    struct failure why = { .text = "" };
    int status = 0;
    assert_int_equal(diff_into(request, &status, &why), error);
    if (!strstr(why.text, says))
        fail_msg("\"%s\" is not told: %s", says, why.text);
}

static void test_diff_refused(void **state)
{
    (void)state;
    struct diff_request request = request_of("spu>1%");
    check_diff_refused(&request, -EINVAL, "metrics are time, cpu");
    request.limits = "cpu:nothing>1%";
    check_diff_refused(&request, -EINVAL, "neither profile has");
    request.limits = NULL;
    request.old_file = "none.json";
    check_diff_refused(&request, -ENOENT, "none.json cannot be read");
}

static void test_diff_page(void **state)
{
    (void)state;
    struct diff_request request = request_of(NULL);
    request.html = true;
    check_diff(&request, 0, "", "comparison saved to new-diff.html");
    AUTO_FREE char *page = file_text("new-diff.html");
    assert_non_null(strstr(page, "<!DOCTYPE html>"));
    assert_null(strstr(page, "<img"));
    request.output = "other.html";
    check_diff(&request, 0, "", "other.html");
    assert_true(is_there("other.html"));
}

/* ---- names of pages ---- */

static void test_page_names(void **state)
{
    (void)state;
    static const struct {
        const char *profile, *suffix, *page;
    } cases[] = {
        { "old.json", "", "old.html" },       { "old.json", "-diff", "old-diff.html" },
        { NULL, "", "scalene-profile.html" }, { "/dev/stdin", "", "scalene-profile.html" },
        { "./old.json", "", "./old.html" },   { "plain", "", "plain.html" },
    };
    fake_write(&folder, "plain", "x", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[4096];
        assert_int_equal(page_file_name(cases[i].profile, cases[i].suffix, path), 0);
        assert_string_equal(path, cases[i].page);
    }
}

#define VERB_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERB_TEST(test_merge),     VERB_TEST(test_merge_refused), VERB_TEST(test_merge_nowhere),
        VERB_TEST(test_diff),      VERB_TEST(test_limits),        VERB_TEST(test_diff_refused),
        VERB_TEST(test_diff_page), VERB_TEST(test_page_names),    VERB_TEST(test_top),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
