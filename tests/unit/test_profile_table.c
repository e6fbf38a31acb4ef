/* The table of a report: exact text at three widths, and what must hold for any report and width.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "tests/unit/golden.h"
#include "tests/unit/sample_report.h"
#include "tests/unit/table_text.h"

static const struct table_settings PLAIN = {
    .width = 80,
    .cpu_percent_threshold = 1,
    .malloc_threshold = 100,
};

static char *assert_plain(const struct report *report, const struct table_settings *settings)
{
    char *text = table_text(report, settings);
    assert_fit(text, settings->width);
    return text;
}

static void test_golden(void **state)
{
    (void)state;
    static const size_t widths[] = { 80, 132, 200 };
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        struct table_settings settings = PLAIN;
        char name[64];
        settings.width = widths[i];
        AUTO_FREE char *plain = assert_plain(&sample_report, &settings);
        snprintf(name, sizeof name, "table/plain_%zu.txt", widths[i]);
        assert_golden(name, plain);

        settings.coloured = true;
        AUTO_FREE char *coloured = table_text(&sample_report, &settings);
        snprintf(name, sizeof name, "table/coloured_%zu.txt", widths[i]);
        assert_golden(name, coloured);
    }
}

static void test_reduced(void **state)
{
    (void)state;
    struct table_settings settings = PLAIN;
    settings.reduced = true;
    AUTO_FREE char *text = assert_plain(&sample_report, &settings);
    assert_golden("table/reduced_80.txt", text);
}

/* Colours add to the text and change nothing of it. */
static void assert_colours_only_add(const struct report *report)
{
    struct table_settings settings = PLAIN;
    AUTO_FREE char *plain = table_text(report, &settings);
    settings.coloured = true;
    AUTO_FREE char *coloured = table_text(report, &settings);
    char *to = coloured;
    for (const char *from = coloured; *from;) {
        if (*from == '\033')
            from += strcspn(from, "m") + 1;
        else
            *to++ = *from++;
    }
    *to = '\0';
    assert_string_equal(coloured, plain);
}

static void test_colours_are_only_added(void **state)
{
    (void)state;
    assert_colours_only_add(&sample_report);
}

static void test_any_width(void **state)
{
    (void)state;
    for (size_t width = 20; width <= 500; width += width < 160 ? 1 : 17) {
        struct table_settings settings = PLAIN;
        settings.width = width;
        AUTO_FREE char *text = assert_plain(&sample_report, &settings);
        assert_non_null(strstr(text, "\n     8 "));
    }
    for (size_t width = 20; width <= 200; width++) {
        struct table_settings settings = PLAIN;
        settings.width = width;
        settings.selection.sort = column_find("native_top");
        AUTO_FREE char *widest = assert_plain(&sample_report, &settings);
        assert_non_null(strstr(widest, ":4"));
        settings.selection.sort = NULL;
        settings.selection.top = 20;
        AUTO_FREE char *list = assert_plain(&sample_report, &settings);
        assert_non_null(strstr(list, ":12"));
    }
    struct table_settings settings = PLAIN;
    settings.width = 0;
    AUTO_FREE char *narrow = table_text(&sample_report, &settings);
    assert_fit(narrow, 20);
    settings.width = 1000000;
    AUTO_FREE char *wide = table_text(&sample_report, &settings);
    assert_fit(wide, 500);
}

static void test_thresholds(void **state)
{
    (void)state;
    struct table_settings settings = PLAIN;
    AUTO_FREE char *usual = assert_plain(&sample_report, &settings);
    assert_null(strstr(usual, "small.py"));
    assert_null(strstr(usual, "0.3%"));
    assert_null(strstr(usual, "Never.called"));

    settings.cpu_percent_threshold = 0;
    AUTO_FREE char *all = assert_plain(&sample_report, &settings);
    assert_non_null(strstr(all, "small.py"));
    assert_non_null(strstr(all, "0.3%"));
    assert_null(strstr(all, "Never.called"));

    settings.cpu_percent_threshold = 50;
    settings.reduced = true;
    AUTO_FREE char *few = assert_plain(&sample_report, &settings);
    assert_non_null(strstr(few, "prog.py"));
    assert_null(strstr(few, "rest.py:"));
    assert_null(strstr(few, "zlib.compress"));
}

/* Files by name, functions with their lines, and nothing. */
static void test_selected(void **state)
{
    (void)state;
    struct table_settings settings = PLAIN;
    settings.selection.file = "small";
    AUTO_FREE char *small = assert_plain(&sample_report, &settings);
    assert_non_null(strstr(small, "small.py:")); /* though it costs too little to be shown */
    assert_null(strstr(small, "prog.py: "));
    assert_null(strstr(small, "Threads\n"));

    settings.selection = (struct selection){ .function = "squeeze" };
    AUTO_FREE char *function = assert_plain(&sample_report, &settings);
    assert_non_null(strstr(function, "Functions\n     3 "));
    assert_null(strstr(function, "count\n"));
    assert_null(strstr(function, "rest.py: "));
}

/* One sentence says why, of a list and of whole files. */
static void test_nothing_to_show(void **state)
{
    (void)state;
    static const struct {
        struct selection selection;
        const char *sort, *says;
    } rows[] = {
        { { .file = "nope" }, NULL, "\n\nNo file of this profile matches 'nope'.\n" },
        { { .file = "no\033pe", .top = 3 },
          NULL,
          "\n\nNo file of this profile matches 'no\\x1bpe'.\n" },
        { { .function = "nope" }, NULL, "\n\nNo function of this profile matches 'nope'.\n" },
        { { .function = "count", .file = "small" },
          "samples",
          "\n\nNo function of this profile matches 'count' in such a file.\n" },
        { { 0 }, "live_mb", "\n\nNo line has a value in the column live (live_mb).\n" },
        { { .file = "small" },
          "idle_s",
          "\n\nNo line has a value in the column idle s (idle_s).\n" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct table_settings settings = PLAIN;
        settings.selection = rows[i].selection;
        settings.selection.sort = rows[i].sort ? column_find(rows[i].sort) : NULL;
        AUTO_FREE char *text = assert_plain(&sample_report, &settings);
        if (!strstr(text, rows[i].says))
            fail_msg("not said: %s in %s", rows[i].says, text);
    }
    struct table_settings settings = PLAIN;
    settings.selection.sort = column_find("live_mb");
    const struct report other = { .absent_columns = (uint64_t)1
                                                    << (settings.selection.sort - columns) };
    AUTO_FREE char *untold = assert_plain(&other, &settings);
    assert_non_null(strstr(untold, "This profile does not tell live (live_mb).\n"));
    settings.selection = (struct selection){ .top = 3 };
    AUTO_FREE char *empty = assert_plain(&other, &settings);
    assert_non_null(strstr(empty, "No line has any value.\n"));
}

/* A line that costs little but allocates often is shown, and its columns appear. */
static void test_mallocs_keep_a_line(void **state)
{
    (void)state;
    struct line_stats lines[] = {
        { .lineno = 1, .line = "keep.append(bytes(9))", .n_mallocs = 100, .n_malloc_mb = 12.5 },
        { .lineno = 2, .line = "other()", .n_mallocs = 99, .n_malloc_mb = 11.5 },
    };
    struct report_file files[] = { { .path = "m.py", .lines = { ITEMS(lines) } } };
    const struct report report = { .files = { ITEMS(files) } };
    struct table_settings settings = PLAIN;
    settings.reduced = true;
    AUTO_FREE char *text = assert_plain(&report, &settings);
    assert_non_null(strstr(text, "12.5M"));
    assert_null(strstr(text, "11.5M"));
    assert_null(strstr(text, "other()"));
    assert_null(strstr(text, "Python"));
}

static void test_empty(void **state)
{
    (void)state;
    const struct report report = { .elapsed_time_sec = 0.02 };
    AUTO_FREE char *text = assert_plain(&report, &PLAIN);
    assert_string_equal(text, "Profile\n"
                              "  Elapsed   20.0ms\n"
                              "\n"
                              "No line reaches the thresholds of what is shown.\n");
}

/* Foreign profiles may lack any text. */
static void test_missing_texts(void **state)
{
    (void)state;
    struct native_share share = { "", "", 4 };
    struct line_stats lines[] = {
        { .lineno = 1, .n_cpu_percent_c = 40, .native_top = { &share, 1 } }
    };
    struct report_file files[] = {
        { .path = "", .percent_cpu_time = 40, .lines = { ITEMS(lines) } }
    };
    struct report_process processes[] = { { .pid = 1, .note = "" } };
    const struct report report = { .files = { ITEMS(files) }, .processes = { ITEMS(processes) } };
    AUTO_FREE char *text = assert_plain(&report, &PLAIN);
    assert_non_null(strstr(text, "40.0%"));
}

/* A shell's children are one line, however many they are; other notes keep theirs. */
static void test_notes_in_groups(void **state)
{
    (void)state;
    const char *commands[] = { "sh", "git", "sed", "tr", "cat" };
    struct report_process processes[40];
    char other[20][16];
    for (size_t i = 0; i < 40; i++)
        processes[i] = (struct report_process){ .pid = (int64_t)i,
                                                .argv = { &commands[i % 5], 1 },
                                                .note = "not a Python" };
    processes[7].note = "could not be looked into";
    const struct report report = { .processes = { processes, 40 } };
    AUTO_FREE char *text = assert_plain(&report, &(struct table_settings){ .width = 100 });
    assert_non_null(strstr(text, "  - 39 processes (sh, git, sed, tr and others): not a Python\n"));
    assert_non_null(strstr(text, "  - process 7 (sed): could not be looked into\n"));
    for (size_t i = 0; i < 20; i++) {
        snprintf(other[i], sizeof other[i], "note %zu", i);
        processes[i].note = other[i];
        processes[i].argv.count = 0;
    }
    AUTO_FREE char *many = assert_plain(&report, &(struct table_settings){ .width = 100 });
    assert_non_null(strstr(many, "  - process 9: note 9\n"));
    assert_null(strstr(many, "note 10"));
    assert_non_null(strstr(many, "  - 30 more processes have notes\n"));
}

static void test_long_lines(void **state)
{
    (void)state;
    enum { LENGTH = 100000 };
    static const char *const fillings[] = {
        "x", "\t", "\033", "\xFF", "测", "\xCC\x81", "\xD7\xA9"
    };
    for (size_t i = 0; i < sizeof fillings / sizeof *fillings; i++) {
        AUTO_FREE char *line = calloc(1, LENGTH + 1);
        assert_non_null(line);
        size_t step = strlen(fillings[i]);
        for (size_t used = 0; used + step <= LENGTH - 1; used += step)
            memcpy(line + used, fillings[i], step);
        strcat(line, ".");
        struct line_stats lines[] = { { .lineno = 1, .line = line, .n_cpu_percent_python = 100 } };
        struct report_file files[] = { { .path = line,
                                         .percent_cpu_time = 100,
                                         .lines = { ITEMS(lines) },
                                         .functions = { ITEMS(lines) } } };
        const char *notes[] = { line };
        const struct report report = { .program = line,
                                       .args = { ITEMS(notes) },
                                       .files = { ITEMS(files) },
                                       .notes = { ITEMS(notes) } };
        AUTO_FREE char *text = assert_plain(&report, &PLAIN);
        assert_non_null(strstr(text, "…\n"));
        lines[0].n_cpu_percent_python = 10; /* a hot line has no parts */
        assert_colours_only_add(&report);
    }
}

static size_t count_lines(const char *text)
{
    size_t count = 0;
    for (; (text = strchr(text, '\n')); text++)
        count++;
    return count;
}

static void test_many_lines(void **state)
{
    (void)state;
    enum { COUNT = 5000, HEAD = 4 /* two titles, a blank line, columns */ };
    AUTO_FREE struct line_stats *lines = calloc(COUNT, sizeof *lines);
    assert_non_null(lines);
    for (int i = 0; i < COUNT; i++)
        lines[i] = (struct line_stats){ .lineno = i + 1, .line = "pass" };
    lines[2499].n_cpu_percent_python = 50;
    lines[4999].n_cpu_percent_python = 50;
    struct report_file files[] = {
        { .path = "long.py", .percent_cpu_time = 100, .lines = { lines, COUNT } }
    };
    const struct report report = { .files = { ITEMS(files) } };
    struct table_settings settings = PLAIN;
    AUTO_FREE char *whole = assert_plain(&report, &settings);
    assert_int_equal(count_lines(whole), HEAD + COUNT);
    settings.reduced = true;
    AUTO_FREE char *reduced = assert_plain(&report, &settings);
    assert_int_equal(count_lines(reduced), HEAD + 4); /* dots, 2500, dots, 5000 */
    assert_non_null(strstr(reduced, "\n  2500   50.0%"));
    assert_non_null(strstr(reduced, "\n  5000   50.0%"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_reduced),
        cmocka_unit_test(test_colours_are_only_added),
        cmocka_unit_test(test_any_width),
        cmocka_unit_test(test_thresholds),
        cmocka_unit_test(test_selected),
        cmocka_unit_test(test_nothing_to_show),
        cmocka_unit_test(test_mallocs_keep_a_line),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_missing_texts),
        cmocka_unit_test(test_notes_in_groups),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_many_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
