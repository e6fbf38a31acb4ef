/* Which file a process means by a name that is no path: it depends on its folder, on what started
 * it, and on what runs it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/replay.h"

#define STREAM "stream\t2\n"
#define PROCESS(pid, start, cwd, words)                                                            \
    "process\t" pid "\t1\t-1\t" start "\t0\t0\t0\t0\t0\t0\t0\t0\t0\t-1\tpython\t3.8.1\t" cwd       \
    "\t-\t" words "\n"
#define FRAME(number, name, file) "frame\t" number "\tpy\t" name "\t" file "\t3\t1\t1\t-\t0\t0\n"
#define TICK(time, pid, frames)                                                                    \
    "tick\t" time "\t" pid "\t1000000\t0\t0\n"                                                     \
    "sample\t" pid "\t" pid "\t-\tmain\trunning\t1000000\t0\t0\t0\t1\t" frames "\n"
#define MEMORY(pid, frames)                                                                        \
    "memory\t1000\t" pid "\t" pid "\tallocated\t1\t1048576\t1048576\tpython\t" frames "\n"

#define MS 1e-3

static struct profile *heard(const char *stream)
{
    struct profile_settings settings = replay_settings("");
    settings.sources = NULL;
    settings.cpu_percent_threshold = 0;
    settings.memory = true;
    AUTO_FCLOSE FILE *file = fmemopen((void *)stream, strlen(stream), "r");
    return replay_from(file, "a stream", &settings);
}

static struct report *told(const char *stream)
{
    AUTO_PROFILE struct profile *profile = heard(stream);
    struct report *report = NULL;
    assert_int_equal(profile_report(profile, &report), 0);
    return report;
}

static void test_folders(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report =
        told(STREAM PROCESS("100", "0", "/srv/da", "python3.8\tmain.py")
                 PROCESS("200", "0", "/srv/db", "python3.8\tmain.py") FRAME("1", "work", "main.py")
                     TICK("1000000", "100", "1") TICK("2000000", "200", "1")
                         TICK("3000000", "200", "1"));
    assert_int_equal(report->files.count, 2);
    assert_float_equal(line_find(report, "/srv/da/main.py", 3)->cpu_python_s, 1 * MS, 1e-9);
    assert_float_equal(line_find(report, "/srv/db/main.py", 3)->cpu_python_s, 2 * MS, 1e-9);
    assert_int_equal(report->combined_stacks.count, 2);
}

/* The same stack of the same thread, in another folder since the process became another program. */
static void test_folder_that_changes(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report = told(
        STREAM PROCESS("100", "0", "/srv/da", "python3.8\tmain.py") FRAME("1", "work", "main.py")
            FRAME("2", "work", "../main.py") TICK("1000000", "100", "1")
                PROCESS("100", "0", "/srv/db", "python3.8\tmain.py") TICK("2000000", "100", "1")
                    PROCESS("100", "0", "/srv/da/x", "python3.8\t../main.py")
                        TICK("3000000", "100", "2"));
    assert_int_equal(report->files.count, 2);
    assert_float_equal(line_find(report, "/srv/da/main.py", 3)->cpu_python_s, 2 * MS, 1e-9);
    assert_float_equal(line_find(report, "/srv/db/main.py", 3)->cpu_python_s, 1 * MS, 1e-9);
    assert_int_equal(report->combined_stacks.count, 2); /* by two names, the same lines */
}

/* Of a child that nobody has told of it is known where it began; else nothing is kept. */
static void test_memory_before_process(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report =
        told(STREAM PROCESS("100", "0", "/srv/mp", "python3.8\tmp.py") FRAME("1", "work", "mp.py")
                 MEMORY("200", "1") PROCESS("200", "0", "/srv/mp", "python3.8\tmp.py")
                     TICK("2000000", "200", "1"));
    assert_int_equal(report->files.count, 1);
    assert_float_equal(line_find(report, "/srv/mp/mp.py", 3)->allocated_mb, 1, 1e-9);
    AUTO_REPORT struct report *later = told(STREAM FRAME("1", "work", "mp.py") MEMORY("200", "1")
                                                PROCESS("200", "0", "/srv/mp", "python3.8\tmp.py")
                                                    TICK("2000000", "200", "1") MEMORY("200", "1"));
    assert_float_equal(line_find(later, "/srv/mp/mp.py", 3)->cpu_python_s, 1 * MS, 1e-9);
    assert_float_equal(line_find(later, "/srv/mp/mp.py", 3)->allocated_mb, 1, 1e-9);
    assert_float_equal(line_find(later, "mp.py", 3)->allocated_mb, 1, 1e-9);
}

/* What multiprocessing gives its helpers by -c is no code of the user's, what users give is. */
static void test_helpers(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report =
        told(STREAM PROCESS("100", "0", "/srv/mp", "python3\t-c\timport mp")
                 PROCESS("200", "0", "/srv/mp",
                         "python3\t-B\t-c\tfrom multiprocessing.resource_tracker import main;main")
                     FRAME("1", "<module>", "<string>") FRAME("2", "work", "/srv/mp/mp.py")
                         TICK("1000000", "100", "1") TICK("2000000", "200", "1")
                             TICK("3000000", "200", "2 1"));
    assert_int_equal(report->files.count, 2);
    const struct line_stats *line = line_find(report, "<string>", 3);
    assert_float_equal(line->cpu_python_s, 1 * MS, 1e-9);
    assert_float_equal(line->cumulative_s, 1 * MS, 1e-9);
    assert_float_equal(line_find(report, "/srv/mp/mp.py", 3)->cpu_python_s, 1 * MS, 1e-9);
    assert_float_equal(report->totals.cpu_python_s, 3 * MS, 1e-9);
    assert_string_equal(report->hidden.items[0].path, "<multiprocessing>");
}

/* Lines of .pth files run before the program does. */
static void test_site(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report =
        told(STREAM PROCESS("100", "0", "/srv/mp", "python3\t-c\timport mp")
                 FRAME("1", "<module>", "<string>") FRAME("2", "addpackage", "<frozen site>")
                     FRAME("3", "addpackage", "/usr/lib/python3.8/site.py")
                         FRAME("4", "addpackage", "/srv/mp/mp.py") TICK("1000000", "100", "1 2")
                             TICK("2000000", "100", "1 3") TICK("3000000", "100", "1 4")
                                 TICK("4000000", "100", "1"));
    assert_float_equal(line_find(report, "<string>", 3)->cpu_python_s, 2 * MS, 1e-9);
    assert_float_equal(report->hidden.items[0].seconds, 2 * MS, 1e-9);
    assert_string_equal(report->hidden.items[0].path, "<site>");
}

/* What is imported before the module runs is not the module, nor is what another process runs. */
static void test_module(void **state)
{
    (void)state;
    struct profile_first first;
    AUTO_PROFILE struct profile *early = heard(
        STREAM PROCESS("100", "0", "/srv/mp", "python3\t-m\tmp.tool")
            PROCESS("200", "0", "/srv/mp", "python3\t-m\tother")
                FRAME("1", "_run_module_as_main", "<frozen runpy>")
                    FRAME("2", "_run_code", "<frozen runpy>") FRAME("3", "_get_module_details",
                                                                    "<frozen runpy>")
                        FRAME("4", "<module>", "mp/__init__.py") FRAME("5", "<module>", "other.py")
                            TICK("1000000", "100", "4 3 1") TICK("2000000", "200", "5 2 1"));
    assert_true(profile_find_first(early, &first));
    assert_null(first.module);
    assert_string_equal(first.argv[2], "mp.tool");
    AUTO_PROFILE struct profile *profile =
        heard(STREAM PROCESS("100", "0", "/srv/mp", "python3\t-m\tmp.tool")
                  FRAME("1", "_run_module_as_main", "/usr/lib/python3.8/runpy.py")
                      FRAME("2", "_run_code", "/usr/lib/python3.8/runpy.py")
                          FRAME("3", "<module>", "mp/tool.py") FRAME("4", "work", "mp/tool.py")
                              TICK("1000000", "100", "4 3 2 1"));
    assert_true(profile_find_first(profile, &first));
    assert_string_equal(first.module, "/srv/mp/mp/tool.py");
    assert_true(first.is_python);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_folder_that_changes),
        cmocka_unit_test(test_memory_before_process),
        cmocka_unit_test(test_helpers),
        cmocka_unit_test(test_site),
        cmocka_unit_test(test_module),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
