/* Lines and functions by a column: which, in what order, how many; by name of file or function. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "output/model/ranking.h"
#include "sampler/base/cleanup.h"
#include "tests/unit/sample_report.h"

/* "prog.py:8 prog.py:4 …" */
static const char *ranked_text(const struct selection *selection, enum ranking_of of)
{
    static char text[1024];
    struct ranking ranking;
    size_t used = 0;
    assert_int_equal(ranking_new(&sample_report, selection, of, &ranking), 0);
    AUTO_FREE struct ranked *items = ranking.items;
    text[0] = '\0';
    for (size_t i = 0; i < ranking.count; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%s:%d", i ? " " : "",
                             strrchr(items[i].file->path, '/') + 1, (int)items[i].stats->lineno);
    return text;
}

static const char *by(const char *key, size_t top)
{
    const struct selection selection = { .sort = key ? column_find_named(key) : NULL, .top = top };
    return ranked_text(&selection, RANKING_OF_LINES);
}

static void test_order(void **state)
{
    (void)state;
    assert_string_equal(by(NULL, 3), "prog.py:8 prog.py:4 prog.py:9");
    assert_string_equal(by("n_cpu_percent_c", 0), "prog.py:4");
    assert_string_equal(by("idle_s", 0), "prog.py:9");
    assert_string_equal(by("waiting", 0), "prog.py:11 prog.py:9");
    assert_string_equal(by("native_top", 0), "prog.py:4");
    assert_string_equal(by("lineno", 2), "small.py:1 rest.py:2");
    assert_string_equal(by("samples", 2), "prog.py:11 prog.py:9");
    assert_string_equal(by("n_peak_mb", 0), "");
}

/* Every column can be asked for. */
static void test_every_column(void **state)
{
    (void)state;
    for (size_t i = 0; i < column_count; i++) {
        const struct selection selection = { .sort = &columns[i] };
        struct ranking ranking;
        assert_int_equal(ranking_new(&sample_report, &selection, RANKING_OF_LINES, &ranking), 0);
        for (size_t n = 1; n < ranking.count; n++)
            assert_true(ranking.items[n - 1].rank >= ranking.items[n].rank);
        free(ranking.items);
    }
}

static void test_functions(void **state)
{
    (void)state;
    const struct selection all = { .top = 9 };
    assert_string_equal(ranked_text(&all, RANKING_OF_FUNCTIONS), "prog.py:6 prog.py:3 prog.py:10");
    const struct selection some = { .function = "qu" };
    assert_string_equal(ranked_text(&some, RANKING_OF_FUNCTIONS), "prog.py:3");
    const struct selection shell = { .function = "c*t" };
    assert_string_equal(ranked_text(&shell, RANKING_OF_FUNCTIONS), "prog.py:6");
}

static void test_patterns(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        bool takes;
    } rows[] = {
        { NULL, true },        { "prog", true },   { "/srv/app/prog.py", true }, { "*.py", true },
        { "prog.??", true },   { "app/p*", true }, { "[p]rog.py", true },        { "", true },
        { "prog.pyc", false }, { "rog.*", false }, { "*.pyx", false },           { "Prog", false },
    };
    const struct report_file *file = &sample_files[1];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct selection selection = { .file = rows[i].pattern };
        assert_int_equal(selection_takes_file(&selection, file), rows[i].takes);
    }
}

/* A function's lines are those from its decorator to its end, functions in it among them. */
static void test_lines_of_functions(void **state)
{
    (void)state;
    struct line_stats lines[] = {
        { .lineno = 1 },
        { .lineno = 2 }, /* @decorator */
        { .lineno = 3, .start_function_line = 3, .end_function_line = 6 },
        { .lineno = 4, .start_function_line = 4, .end_function_line = 5 },
        { .lineno = 5, .start_function_line = 4, .end_function_line = 5 },
        { .lineno = 6, .start_function_line = 3, .end_function_line = 6 },
        { .lineno = 7 },
    };
    struct line_stats functions[] = { { .lineno = 2, .line = "outer" },
                                      { .lineno = 4, .line = "outer.<locals>.inner" },
                                      { .lineno = 99, .line = "gone" } };
    const struct report_file file = { .path = "f.py",
                                      .lines = { ITEMS(lines) },
                                      .functions = { ITEMS(functions) } };
    static const struct {
        const char *pattern, *marks;
    } rows[] = { { "outer", ".#####." }, { "inner", "...##.." }, { "gone", "......." } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct selection selection = { .function = rows[i].pattern };
        AUTO_FREE bool *marks = NULL;
        char got[8] = "";
        assert_int_equal(selection_mark_lines(&selection, &file, &marks), 0);
        for (size_t n = 0; n < 7; n++)
            got[n] = marks[n] ? '#' : '.';
        assert_string_equal(got, rows[i].marks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_every_column),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_lines_of_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
