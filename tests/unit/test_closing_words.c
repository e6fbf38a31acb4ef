/* What a run says at its end, word for word: where the profile is, or why there is nothing in it.
 */
#include "output/cli/closing_words.h"

#include "sampler/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

static const char USUAL[] = "scalene-profile.json";

static void assert_saved(const char *file, const char *want)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    closing_words_saved(out, file, USUAL);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, want);
    free(text);
}

static void assert_nothing_with(const struct report *report,
                                const struct profile_settings *settings, const char *want)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    closing_words_nothing(out, report, settings);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, want);
    free(text);
}

static void assert_nothing(const struct report *report, const char *want)
{
    assert_nothing_with(report, &(struct profile_settings){ 0 }, want);
}

static void test_usual_file(void **state)
{
    (void)state;
    assert_saved(USUAL, "\nscalene-attach: profile saved to scalene-profile.json\n"
                        "  To view in browser:  scalene-attach view\n"
                        "  To view in terminal: scalene-attach view --cli\n");
}

static void test_named_file(void **state)
{
    (void)state;
    assert_saved("/tmp/a.json", "\nscalene-attach: profile saved to /tmp/a.json\n"
                                "  To view in browser:  scalene-attach view /tmp/a.json\n"
                                "  To view in terminal: scalene-attach view --cli /tmp/a.json\n");
}

/* The commands can be pasted into a shell. */
static void test_odd_names(void **state)
{
    (void)state;
    assert_saved("it's größe.json",
                 "\nscalene-attach: profile saved to it's größe.json\n"
                 "  To view in browser:  scalene-attach view 'it'\\''s größe.json'\n"
                 "  To view in terminal: scalene-attach view --cli 'it'\\''s größe.json'\n");
    assert_saved("-r.json", "\nscalene-attach: profile saved to -r.json\n"
                            "  To view in browser:  scalene-attach view './-r.json'\n"
                            "  To view in terminal: scalene-attach view --cli './-r.json'\n");
    assert_saved("\033[2J", "\nscalene-attach: profile saved to \\x1b[2J\n"
                            "  To view in browser:  scalene-attach view '\\x1b[2J'\n"
                            "  To view in terminal: scalene-attach view --cli '\\x1b[2J'\n");
}

static const char *shell[] = { "sh", "-c", "true" };
static struct report_process processes[] = {
    { .pid = 7, .argv = { shell, 3 } },
    { .pid = 8, .note = "ended before it could be looked at\n" },
};

static void test_no_python(void **state)
{
    (void)state;
    const struct report report = { .processes = { processes, 2 } };
    assert_nothing(&report, "scalene-attach: nothing to show: no Python ran:\n"
                            "  process 7 (sh): is no Python\n"
                            "  process 8: ended before it could be looked at\\x0a\n"
                            "  Name a Python program: scalene-attach -- python3 prog.py\n");
}

static void test_too_short(void **state)
{
    (void)state;
    const char *notes[] = { "no permission to pause threads" };
    const struct report report = { .totals.elapsed_s = 0.0201, .notes = { notes, 1 } };
    assert_nothing(&report, "scalene-attach: nothing to show: no sample was taken in 20.1ms.\n"
                            "  Let it run for longer, or look more often: --rate 1000\n"
                            "  Note: no permission to pause threads\n");
}

static void test_nothing_seen(void **state)
{
    (void)state;
    struct report report = { .totals.elapsed_s = 12 };
    assert_nothing(&report, "scalene-attach: nothing to show: no sample was taken in 12.0s.\n");
    report.sampling.dropped = 99;
    assert_nothing(&report,
                   "scalene-attach: nothing to show: each of 99 looks at a stack found it moving, "
                   "and was dropped.\n"
                   "  Let threads be paused for a moment: leave out --nonblocking.\n");
}

static struct report_hidden hidden[] = {
    { "/usr/lib/python3.13/json/decoder.py", 7.5 },
    { "/usr/lib/python3.13/bad\033name.py", 0.25 },
};

static void test_hidden(void **state)
{
    (void)state;
    const struct report report = { .sampling.samples = 900,
                                   .totals = { .elapsed_s = 9, .cpu_python_s = 8 },
                                   .hidden = { .items = hidden, .count = 2 } };
    assert_nothing(&report,
                   "scalene-attach: nothing to show: 8.00s of CPU and idle time passed in files "
                   "that are not shown:\n"
                   "     7.50s  /usr/lib/python3.13/json/decoder.py\n"
                   "     250ms  /usr/lib/python3.13/bad\\x1bname.py\n"
                   "  Show every file with --profile-all, or some of them with --profile-all "
                   "--profile-only NAME,…\n");
}

/* Nothing but to leave them out shows what these hide. */
static void test_hidden_by_filters(void **state)
{
    (void)state;
    static const char *const parts[] = { "elsewhere", NULL };
    static const struct {
        struct profile_settings settings;
        const char *want;
    } ROWS[] = {
        { { .only = parts },
          "  Leave out --profile-only, which hides files; those of libraries are shown with "
          "--profile-all.\n" },
        { { .exclude = parts, .profile_all = true },
          "  Leave out --profile-exclude, which hides files.\n" },
        { { .only = parts, .exclude = parts, .profile_all = true },
          "  Leave out --profile-only and --profile-exclude, which hide files.\n" },
        { { .virtual_time = true },
          "  Show every file with --profile-all, or some of them with --profile-all "
          "--profile-only NAME,…\n"
          "  Virtual time counts CPU time alone: leave out --use-virtual-time.\n" },
    };
    const struct report report = { .sampling.samples = 900,
                                   .totals = { .elapsed_s = 9, .cpu_python_s = 4 },
                                   .hidden = { .items = hidden, .count = 1 } };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        char want[1024];
        snprintf(want, sizeof want,
                 "scalene-attach: nothing to show: 4.00s of CPU and idle time passed in files that "
                 "are not shown:\n"
                 "     7.50s  /usr/lib/python3.13/json/decoder.py\n%s",
                 ROWS[i].want);
        assert_nothing_with(&report, &ROWS[i].settings, want);
    }
}

static void test_hidden_by_decorators(void **state)
{
    (void)state;
    const struct report report = {
        .sampling.samples = 900,
        .totals = { .elapsed_s = 9, .cpu_python_s = 8 },
        .hidden = { .items = hidden, .count = 1, .by_decorator = true },
    };
    assert_nothing(&report,
                   "scalene-attach: nothing to show: 8.00s of CPU and idle time passed in files "
                   "that are not shown:\n"
                   "     7.50s  /usr/lib/python3.13/json/decoder.py\n"
                   "  Only functions with @profile are shown: take it away, or run one of them.\n");
}

static void test_waited(void **state)
{
    (void)state;
    struct report report = {
        .sampling.samples = 900,
        .totals = { .elapsed_s = 9,
                    .cpu_python_s = 0.01,
                    .idle_s = 8.9,
                    .wait_s = { { [THREAD_WAIT_IO - THREAD_WAIT_GIL] = 8.9 } } },
    };
    assert_nothing(&report,
                   "scalene-attach: nothing to show: in 9.00s the program only waited (io 8.90s)"
                   ".\n"
                   "  Profile it while it works, or for longer.\n");
    report.hidden.items = hidden;
    report.hidden.count = 1;
    assert_nothing(&report,
                   "scalene-attach: nothing to show: in 9.00s the program only waited (io 8.90s)"
                   ", in files that are not shown:\n"
                   "     7.50s  /usr/lib/python3.13/json/decoder.py\n"
                   "  Show every file with --profile-all, or some of them with --profile-all "
                   "--profile-only NAME,…\n");
}

/* No number tells where it was, but the lines that were met do. */
static void test_waited_in_virtual_time(void **state)
{
    (void)state;
    struct line_stats lines[] = { { .lineno = 1, .samples = 2 },
                                  { .lineno = 2 },
                                  { .lineno = 3, .samples = 5 } };
    struct report_file file = { .path = "/srv/wait\033.py", .lines = { lines, 3 } };
    struct report report = { .sampling.samples = 7, .totals.elapsed_s = 1, .files = { &file, 1 } };
    const struct profile_settings settings = { .virtual_time = true };
    assert_nothing_with(&report, &settings,
                        "scalene-attach: nothing to show: in 1.00s the program only waited, in:\n"
                        "  /srv/wait\\x1b.py:3\n"
                        "  /srv/wait\\x1b.py:1\n"
                        "  Virtual time counts CPU time alone: leave out --use-virtual-time.\n");
    report.files.count = 0;
    assert_nothing_with(&report, &settings,
                        "scalene-attach: nothing to show: in 1.00s the program only waited.\n"
                        "  Virtual time counts CPU time alone: leave out --use-virtual-time.\n");
}

static void test_no_file(void **state)
{
    (void)state;
    const struct report report = { .sampling.samples = 900, .totals.cpu_native_s = 2 };
    assert_nothing(&report,
                   "scalene-attach: nothing to show: 2.00s of CPU and idle time passed, none of it "
                   "below Python code with a file of its own.\n"
                   "  Profile it while Python code runs, or for longer.\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usual_file),
        cmocka_unit_test(test_named_file),
        cmocka_unit_test(test_odd_names),
        cmocka_unit_test(test_no_python),
        cmocka_unit_test(test_too_short),
        cmocka_unit_test(test_nothing_seen),
        cmocka_unit_test(test_hidden),
        cmocka_unit_test(test_hidden_by_filters),
        cmocka_unit_test(test_hidden_by_decorators),
        cmocka_unit_test(test_waited),
        cmocka_unit_test(test_waited_in_virtual_time),
        cmocka_unit_test(test_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
