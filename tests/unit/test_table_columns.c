/* Which columns a terminal's table has room for, by how wide it is and what the profile tells; what
 * its head says of threads and memory; and how far colours reach. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/table_text.h"

#define ITEMS(array)                                                                               \
    {                                                                                              \
        (array), sizeof(array) / sizeof *(array)                                                   \
    }

static struct line_stats busy_line = {
    .lineno = 1,
    .line = "        await fetch(url)",
    .n_cpu_percent_python = 20,
    .n_cpu_percent_c = 20,
    .n_sys_percent = 20,
    .cpu_kernel_s = 1,
    .idle_s = 1,
    .n_peak_mb = 5,
    .n_malloc_mb = 9,
    .n_avg_mb = 0.5,
    .n_usage_fraction = 0.5,
    .n_copy_mb_s = 12,
};

/* A copy, in which gcc does not see the stream's pointer. */
static char *text_of(const struct report *report, const struct table_settings *settings)
{
    AUTO_FREE char *text = table_text(report, settings);
    return strdup(text);
}

/* The table's heading, of a file that has this line alone. */
static char *heading_of(struct line_stats *line, size_t width)
{
    struct report_file files[] = { { .path = "m.py", .lines = { line, 1 } } };
    const struct report report = { .files = ITEMS(files), .memory = true };
    const struct table_settings settings = { .width = width };
    AUTO_FREE char *text = text_of(&report, &settings);
    assert_fit(text, width);
    const char *heading = strstr(text, "\n  Line ");
    assert_non_null(heading);
    return strndup(heading + 1, strcspn(heading + 1, "\n"));
}

static void assert_has(const char *heading, const char *const *titles)
{
    for (; *titles; titles++)
        if (!strstr(heading, *titles))
            fail_msg("no %s in: %s", *titles, heading);
}

#define TITLES(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* In a pane of any width there is something beside the code to see. */
static void test_narrow(void **state)
{
    (void)state;
    AUTO_FREE char *small = heading_of(&busy_line, 40);
    assert_has(small, TITLES("Line", "Python", "native", "system", "Code"));
    AUTO_FREE char *smaller = heading_of(&busy_line, 30);
    assert_has(smaller, TITLES("Line", "Python", "native", "Code"));
    AUTO_FREE char *usual = heading_of(&busy_line, 80);
    assert_has(usual, TITLES("Line", "Python", "native", "system", "peak", "share", "Code"));
}

/* The wider, the more: where memory goes before what its time is made of, what it allocated in
 * total last. Nothing that a width shows is missing at a larger one. */
static void test_memory(void **state)
{
    (void)state;
    static const struct {
        size_t width;
        const char *heading;
    } rows[] = {
        { 60, "  Line  Python  native  system     peak  Code" },
        { 80, "  Line  Python  native  system     peak   share  Code" },
        { 100, "  Line  Python  native  system     peak   share  average timeline  Code" },
        { 120, "  Line  Python  native  system     peak   share  average    copy timeline  Code" },
        { 140, "  Line  Python  native  system kernel s   idle s     peak   share  average    copy "
               "timeline  Code" },
        { 180, "  Line  Python  native  system      ± kernel s   idle s     peak   malloc   share  "
               "average    copy timeline    Code" },
    };
    struct point points[] = { { 0, 1 }, { 1e9, 2 } };
    struct line_stats line = busy_line;
    line.memory_samples = (struct point_list)ITEMS(points);
    line.error_percent = 3;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_FREE char *heading = heading_of(&line, rows[i].width);
        assert_string_equal(heading, rows[i].heading);
    }
}

/* A function whose cost lies in a column that found no room would be a row without a number. */
static void test_functions(void **state)
{
    (void)state;
    struct line_stats functions[] = {
        { .lineno = 1, .line = "busy", .n_cpu_percent_python = 20, .cumulative_s = 2 },
        { .lineno = 5, .line = "calls", .cumulative_s = 9 },
    };
    struct report_file files[] = { { .path = "m.py",
                                     .percent_cpu_time = 60,
                                     .lines = { &busy_line, 1 },
                                     .functions = ITEMS(functions) } };
    const struct report report = { .totals.cpu_python_s = 10, .files = ITEMS(files) };
    AUTO_FREE char *narrow = text_of(&report, &(struct table_settings){ .width = 60 });
    assert_null(strstr(narrow, "total s"));
    assert_non_null(strstr(narrow, "  busy\n"));
    assert_null(strstr(narrow, "  calls\n"));
    AUTO_FREE char *wide = text_of(&report, &(struct table_settings){ .width = 200 });
    assert_has(wide, TITLES("total s", "  busy\n", "  calls\n"));
}

/* As many cells as the column is wide, and no bar of them cut. */
static void test_timeline(void **state)
{
    (void)state;
    struct point points[100];
    struct line_stats line = busy_line;
    for (size_t i = 0; i < 100; i++)
        points[i] = (struct point){ (double)i, (double)(i + 1) };
    line.memory_samples = (struct point_list)ITEMS(points);
    struct report_file files[] = { { .path = "m.py", .lines = { &line, 1 } } };
    const struct report report = { .files = ITEMS(files), .memory = true };
    AUTO_FREE char *narrow = text_of(&report, &(struct table_settings){ .width = 100 });
    assert_non_null(strstr(narrow, " ▂▃▄▅▅▆▇█  "));
    AUTO_FREE char *wide = text_of(&report, &(struct table_settings){ .width = 200 });
    assert_non_null(strstr(wide, " ▂▂▃▄▅▅▆▇▇█  "));
}

/* Where a GPU is used or coroutines wait, that is shown before all the rest. */
static void test_gpu_and_await(void **state)
{
    (void)state;
    struct line_stats line = busy_line;
    line.n_async_await_percent = 81;
    AUTO_FREE char *awaits = heading_of(&line, 80);
    assert_has(awaits, TITLES("Python", "native", "system", "peak", "await"));
    line.n_gpu_percent = 40;
    line.n_gpu_peak_memory_mb = 100;
    AUTO_FREE char *both = heading_of(&line, 80);
    assert_has(both, TITLES("Python", "native", "system", "GPU ", "peak", "await"));
}

static void test_wide(void **state)
{
    (void)state;
    struct point points[] = { { 0, 1 }, { 1e9, 2 } };
    struct line_stats line = busy_line;
    line.n_async_await_percent = 81;
    line.n_gpu_percent = 40;
    line.memory_samples = (struct point_list)ITEMS(points);
    AUTO_FREE char *heading = heading_of(&line, 220);
    assert_has(heading, TITLES("Python", "native", "system", "kernel s", "idle s", "await", "GPU",
                               "average", "peak", "timeline", "share", "copy"));
}

/* Workers that share an interpreter, and threads of one pool, are told apart in any pane. */
static void test_workers(void **state)
{
    (void)state;
    const char *const long_path = "/root/.pyenv/versions/3.12.1/bin/python3";
    const char *one[] = { long_path, "work.py", "1" }, *two[] = { long_path, "work.py", "2" };
    struct report_process processes[] = {
        { .pid = 30017, .python = "3.12.1", .argv = ITEMS(one), .cpu_s = 2, .peak_rss_mb = 80 },
        { .pid = 30018, .python = "3.12.1", .argv = ITEMS(two), .cpu_s = 1, .private_mb = 70 },
    };
    struct report_thread threads[] = {
        { .pid = 30017, .tid = 30020, .name = "ThreadPoolExecutor-0_0", .cpu_python_s = 0.5 },
        { .pid = 30017, .tid = 30021, .name = "ThreadPoolExecutor-0_1", .cpu_native_s = 0.25 },
    };
    for (size_t i = 0; i < 2; i++) {
        threads[i].cpu_kernel_s = 0.125;
        threads[i].wait_s.seconds[2] = 12.5;
        threads[i].wait_s.seconds[3] = 1.25;
    }
    const struct report report = { .processes = ITEMS(processes), .threads = ITEMS(threads) };
    for (size_t width = 60; width <= 120; width += 20) {
        AUTO_FREE char *text = text_of(&report, &(struct table_settings){ .width = width });
        assert_fit(text, width);
        assert_has(text, TITLES(width < 70 ? "  Command   python3 work.py 1\n" : long_path,
                                "  python3 work.py 1\n", "  python3 work.py 2\n", "name\n",
                                "  ThreadPoolExecutor-0_0\n", "  ThreadPoolExecutor-0_1\n",
                                "  CPU  ", "  625ms  ", "  375ms  "));
    }
}

/* ---- the head ---- */

static char *head_of(struct report *report)
{
    const struct table_settings settings = { .width = 80 };
    return text_of(report, &settings);
}

static void test_threads(void **state)
{
    (void)state;
    struct report_thread threads[] = { { .tid = 1, .ident = 99 },
                                       { .tid = 2, .name = "worker" },
                                       { .tid = 3 } };
    struct report_process processes[] = {
        { .pid = 1, .python = "3.12.1", .peak_rss_mb = 20 },
        { .pid = 2, .python = "3.12.1", .peak_rss_mb = 34.5 },
        { .pid = 3, .peak_rss_mb = 99, .note = "not a Python" },
    };
    struct report report = { .threads = ITEMS(threads), .processes = ITEMS(processes) };
    AUTO_FREE char *text = head_of(&report);
    assert_non_null(strstr(text, "  Threads   2 in 2 processes; 1 other not profiled\n"));
    /* of the Pythons */
    assert_non_null(strstr(text, "  Memory    34.5M at most (RSS)\n"));
}

/* In a narrow pane the course is short, so that the growth rate is seen; where it was highest is
 * told whole or not at all. */
static void test_memory_row(void **state)
{
    (void)state;
    struct point points[100];
    struct report report = { .memory = true,
                             .max_footprint_mb = 123,
                             .growth_rate = 87.5,
                             .max_footprint_fname = "/srv/app/main.py",
                             .max_footprint_lineno = 1234,
                             .samples = ITEMS(points) };
    for (size_t i = 0; i < 100; i++)
        points[i] = (struct point){ (double)i, (double)(i + 1) };
    static const struct {
        size_t width;
        const char *row;
    } rows[] = {
        { 45, "  Memory    123M at most, growth rate 87.5%\n" },
        { 60, "  Memory    ▂▃▄▅▅▆▇█ 123M at most, growth rate 87.5%\n" },
        { 68, "  Memory    ▂▃▄▅▅▆▇█ 123M at most, growth rate 87.5%\n" },
        { 80, "  Memory    ▁▂▂▃▃▄▄▅▅▅▆▆▇▇██ 123M at most, growth rate 87.5%, at main.py:1234\n" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_FREE char *text = text_of(&report, &(struct table_settings){ .width = rows[i].width });
        if (!strstr(text, rows[i].row))
            fail_msg("at %zu: no %s in: %s", rows[i].width, rows[i].row, text);
    }
}

/* ---- colours ---- */

/* Files are parsed on all cores, and each is shown in its own colours. */
static void test_colours_of_many_files(void **state)
{
    (void)state;
    enum { FILES = 400, LINES = 100 };
    static char paths[FILES][16], codes[FILES][16];
    static struct report_file files[FILES];
    AUTO_FREE struct line_stats *lines = calloc(FILES * LINES, sizeof *lines);
    assert_non_null(lines);
    for (int i = 0; i < FILES; i++) {
        snprintf(paths[i], sizeof paths[i], "%03d.py", i);
        snprintf(codes[i], sizeof codes[i], i % 2 ? "raise %d" : "return x%d", i);
        for (int n = 0; n < LINES; n++)
            lines[LINES * i + n] = (struct line_stats){ .lineno = n + 1, .line = codes[i] };
        lines[LINES * i].n_cpu_percent_python = 5;
        files[i] = (struct report_file){ .path = paths[i],
                                         .percent_cpu_time = 0.25,
                                         .lines = { &lines[LINES * i], LINES } };
    }
    const struct report report = { .files = ITEMS(files) };
    const struct table_settings settings = { .width = 80, .coloured = true, .reduced = true };
    AUTO_FREE char *text = text_of(&report, &settings);
    const char *at = text;
    for (int i = 0; i < FILES && at; i++) {
        char wanted[64];
        snprintf(wanted, sizeof wanted,
                 i % 2 ? "\033[35mraise\033[0m \033[36m%d\033[0m\n" : "\033[35mreturn\033[0m x%d\n",
                 i);
        at = strstr(at, paths[i]);
        assert_non_null(at);
        at = strstr(at, wanted);
        assert_non_null(at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_narrow),        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_timeline),      cmocka_unit_test(test_functions),
        cmocka_unit_test(test_gpu_and_await), cmocka_unit_test(test_wide),
        cmocka_unit_test(test_workers),       cmocka_unit_test(test_threads),
        cmocka_unit_test(test_memory_row),    cmocka_unit_test(test_colours_of_many_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
