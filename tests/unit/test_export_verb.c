/* The verb `export`: which format is meant, where it goes, and the sentences when it cannot. */
#define _GNU_SOURCE 1 /* nftw */

#include "sampler/app/export.h"

#include "sampler/app/formats.h"
#include "sampler/app/report_load.h"
#include "sampler/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <unistd.h>

#include "tests/unit/exported.h"
#include "tests/unit/fake_proc.h"

static struct fake_proc folder;

static int set_up(void **state)
{
    (void)state;
    fake_proc_init(&folder);
    setenv("NO_COLOR", "1", 1);
    return fchdir(folder.fd);
}

static int tear_down(void **state)
{
    (void)state;
    fake_proc_done(&folder);
    return chdir("/");
}

static char *profile_make(const char *name)
{
    size_t size = 0;
    AUTO_REPORT struct report *report = exported_report("shop");
    AUTO_FREE char *json = exported_bytes("json", report, &size);
    fake_write(&folder, name, json, size);
    return exported_bytes("collapsed", report, &size);
}

static char *file_text(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    AUTO_FCLOSE FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_true(getdelim(&text, &size, '\0', file) > 0);
    return text;
}

static int export_told(const struct export_request *asked, struct failure *why)
{
    struct export_request request = *asked;
    *why = (struct failure){ .text = "" };
    request.version = "1.2.3";
    request.quiet = true;
    return export_run(&request, why);
}

/* Standard output goes to `path` meanwhile. */
static int export_into(const char *path, const struct export_request *asked, struct failure *why)
{
    AUTO_CLOSE int saved = dup(STDOUT_FILENO);
    AUTO_CLOSE int into = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    fflush(stdout);
    assert_true(dup2(into, STDOUT_FILENO) >= 0);
    int error = export_told(asked, why);
    fflush(stdout);
    clearerr(stdout);
    assert_true(dup2(saved, STDOUT_FILENO) >= 0);
    return error;
}

static void test_where_it_goes(void **state)
{
    (void)state;
    struct failure why;
    AUTO_FREE char *want = profile_make(VIEW_USUAL_FILE);
    assert_int_equal(export_into("out", &(struct export_request){ .format = "collapsed" }, &why),
                     0);
    AUTO_FREE char *streamed = file_text("out");
    assert_string_equal(streamed, want);
    const struct export_request dash = { .format = "collapsed", .output = "-" };
    assert_int_equal(export_into("dashed", &dash, &why), 0);
    AUTO_FREE char *dashed = file_text("dashed");
    assert_string_equal(dashed, want);
    assert_int_equal(access("-", F_OK), -1);
    assert_int_equal(export_told(&(struct export_request){ .output = "a.folded" }, &why), 0);
    AUTO_FREE char *by_extension = file_text("a.folded");
    assert_string_equal(by_extension, want);
    assert_int_equal(export_told(&(struct export_request){ .file = VIEW_USUAL_FILE,
                                                           .format = "collapsed",
                                                           .output = "b.json" },
                                 &why),
                     0);
    AUTO_FREE char *by_name = file_text("b.json");
    assert_string_equal(by_name, want);
}

static void assert_refused(const struct export_request *request, int error, const char *told)
{
    struct failure why;
    assert_int_equal(export_into("/dev/full", request, &why), error);
    if (!strstr(why.text, told))
        fail_msg("\"%s\" is not told: %s", told, why.text);
}

static void test_refused(void **state)
{
    (void)state;
    free(profile_make("p.json"));
    assert_refused(&(struct export_request){ .format = "collapsed" }, -ENOENT,
                   "there is no scalene-profile.json here");
    assert_refused(&(struct export_request){ .file = "p.json", .format = "collapsed" }, -EIO,
                   "standard output cannot be written: No space left");
    fake_write(&folder, "cut.json", "{\"files\": {", 11);
    for (size_t i = 0; i < format_count; i++)
        assert_refused(&(struct export_request){ .file = "cut.json", .format = formats[i].name },
                       -EBADMSG, "cut.json is truncated");
    assert_int_equal(access("scalene-profile.collapsed", F_OK), -1);
}

/* Where it cannot go, nothing is lost. */
static void test_no_such_folder(void **state)
{
    (void)state;
    struct failure why;
    char folder_path[PATH_MAX];
    AUTO_FREE char *want = profile_make("p.json");
    assert_non_null(getcwd(folder_path, sizeof folder_path));
    setenv("TMPDIR", folder_path, 1);
    const struct export_request request = { .file = "p.json", .output = "none/a.folded" };
    assert_int_equal(export_told(&request, &why), -ENOENT);
    unsetenv("TMPDIR");
    const char *at = strstr(why.text, folder_path);
    if (!at || !strstr(why.text, "none/a.folded could not be written: No such file"))
        fail_msg("not told: %s", why.text);
    char kept[PATH_MAX];
    snprintf(kept, sizeof kept, "%.*s", (int)strcspn(at, ","), at);
    AUTO_FREE char *text = file_text(kept);
    assert_string_equal(text, want);
    assert_string_equal(strrchr(kept, '.'), ".folded");
}

static void test_which_format(void **state)
{
    (void)state;
    static const struct {
        const char *name, *path, *format;
    } rows[] = {
        { NULL, NULL, "json" },
        { NULL, "scalene-profile.json", "json" },
        { NULL, "a.b.json", "json" },
        { NULL, "a.speedscope.json", "speedscope" },
        { NULL, "speedscope.json", "json" },
        { NULL, "/tmp/x.collapsed", "collapsed" },
        { NULL, "x.folded", "collapsed" },
        { NULL, ".folded", "json" },
        { NULL, "x.txt", "json" },
        { "cli", "x.folded", "cli" },
        { "collapsed", "x.json", "collapsed" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(format_choose(rows[i].name, rows[i].path)->name, rows[i].format);
    assert_null(format_find("flamegraph"));
    assert_null(format_of_path("x.txt"));
    for (size_t i = 0; i < format_count; i++) {
        char usual[64];
        format_usual_file(&formats[i], usual, sizeof usual);
        if (*formats[i].extensions)
            assert_ptr_equal(format_choose(NULL, usual), &formats[i]);
    }
}

#define EXPORT_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EXPORT_TEST(test_where_it_goes),
        EXPORT_TEST(test_refused),
        EXPORT_TEST(test_no_such_folder),
        EXPORT_TEST(test_which_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
