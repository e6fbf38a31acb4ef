/* Versions of a file merged: the newest text is kept, whatever the order of the profiles is, each
 * function is there once, and no time goes to a function that did not spend it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/model/merge.h"
#include "sampler/base/cleanup.h"
#include "tests/unit/made_file.h"

DEFINE_CLEANUP(struct report *, report_free)
#define AUTO_REPORT CLEANUP(report_freep)

#define NEAR 1e-9

static struct report report_of(struct made_file *made, double start)
{
    return (struct report){ .profiler_name = "scalene-attach",
                            .start_time_absolute = start,
                            .elapsed_time_sec = 1,
                            .files = { &made->file, 1 },
                            .totals = { .elapsed_s = 1, .cpu_python_s = 1 } };
}

/* Every line takes as many seconds as its number. */
static struct made_file *spending_file(const char *text)
{
    struct made_file *made = made_file_new("/a.py", text);
    for (size_t i = 1; i <= made->file.lines.count; i++)
        made_file_spend(made, i, (double)i);
    return made;
}

static double line_s(const struct report *report, const char *text)
{
    const struct report_file *file = &report->files.items[0];
    for (size_t i = 0; i < file->lines.count; i++)
        if (strcmp(file->lines.items[i].line, text) == 0)
            return file->lines.items[i].cpu_python_s;
    fail_msg("no line %s", text);
    return 0;
}

/* As "comp@1=2.5 hot@7=3". */
static void check_functions(const struct report *report, const char *told)
{
    char got[1024] = "";
    const struct report_file *file = &report->files.items[0];
    for (size_t i = 0, used = 0; i < file->functions.count; i++)
        used +=
            (size_t)snprintf(got + used, sizeof got - used, "%s%s@%d=%g", i ? " " : "",
                             file->functions.items[i].line, (int)file->functions.items[i].lineno,
                             file->functions.items[i].cpu_python_s);
    assert_string_equal(got, told);
}

static double lines_sum(const struct report_file *file)
{
    double sum = 0;
    for (size_t i = 0; i < file->lines.count; i++)
        sum += file->lines.items[i].cpu_python_s;
    return sum;
}

/* Both ways round: the same. */
static struct report *merge_both_ways(struct made_file *older, struct made_file *newer)
{
    const struct report old_report = report_of(older, 1000), new_report = report_of(newer, 2000);
    const struct report *const parts[] = { &old_report, &new_report, &old_report };
    struct report *merged = NULL;
    AUTO_REPORT struct report *other = NULL;
    assert_int_equal(report_merge(parts, 2, "1.2.3", &merged), 0);
    assert_int_equal(report_merge(parts + 1, 2, "1.2.3", &other), 0);
    const struct report_file *file = &merged->files.items[0], *same = &other->files.items[0];
    assert_int_equal(file->lines.count, newer->file.lines.count);
    assert_int_equal(file->functions.count, same->functions.count);
    assert_float_equal(lines_sum(file), lines_sum(&older->file) + lines_sum(&newer->file), NEAR);
    for (size_t i = 0; i < file->lines.count; i++)
        assert_float_equal(file->lines.items[i].cpu_python_s, same->lines.items[i].cpu_python_s,
                           NEAR);
    for (size_t i = 0; i < file->functions.count; i++) {
        const struct line_stats *one = &file->functions.items[i], *two = &same->functions.items[i];
        assert_string_equal(one->line, two->line);
        assert_int_equal(one->lineno, two->lineno);
        assert_float_equal(one->cpu_python_s, two->cpu_python_s, NEAR);
    }
    return merged;
}

#define HOT "def hot(n):\n    t = 0\n    for i in range(n):\n        t += i\n    return t\n"
#define COMP "def comp(d):\n    t = 0\n    t += pack(d, 9)\n    return t\n"
#define COMP_NEW "def comp(data):\n    t = 0\n    t += pack(data, 9)\n    return t\n"
#define COMP_OTHER "def comp(data):\n    while True:\n        yield\n"

/* 1 + 2 + 3 + 4 and 7 + 8 + 9 + 10 of comp; 6 + ... + 10 and 1 + ... + 5 of hot. */
static void test_moved_and_edited(void **state)
{
    (void)state;
    AUTO_FREE struct made_file *older = spending_file(COMP "\n" HOT);
    AUTO_FREE struct made_file *newer = spending_file(HOT "\n" COMP_NEW);
    AUTO_REPORT struct report *merged = merge_both_ways(older, newer);
    check_functions(merged, "hot@1=55 comp@7=44");
    assert_float_equal(line_s(merged, "    t += pack(data, 9)"), 9 + 3, NEAR);
    assert_float_equal(line_s(merged, "        t += i"), 4 + 9, NEAR);
    assert_float_equal(line_s(merged, "def hot(n):"), 1 + 6, NEAR);
    assert_float_equal(merged->files.items[0].lines.items[4].cpu_python_s, 5 + 10, NEAR);
}

/* Nothing of its text is left, but it is still that function. */
static void test_written_anew(void **state)
{
    (void)state;
    AUTO_FREE struct made_file *older = spending_file(HOT "\n" COMP);
    AUTO_FREE struct made_file *newer = spending_file(COMP_OTHER "\n" HOT);
    AUTO_REPORT struct report *merged = merge_both_ways(older, newer);
    check_functions(merged, "comp@1=40 hot@5=50");
    assert_float_equal(line_s(merged, "def comp(data):"), 1 + 7 + 8 + 9 + 10, NEAR);
    assert_float_equal(line_s(merged, "    return t"), 9 + 5, NEAR);
}

/* Its time stays beside the functions that are left, and in those it was in. */
static void test_gone(void **state)
{
    (void)state;
    AUTO_FREE struct made_file *older = spending_file("import zlib\n" COMP HOT "last = 1\n");
    AUTO_FREE struct made_file *newer = spending_file("import zlib\n" HOT "last = 1\n");
    AUTO_REPORT struct report *merged = merge_both_ways(older, newer);
    check_functions(merged, "comp@1=14 hot@2=60");
    assert_float_equal(line_s(merged, "import zlib"), 1 + 1 + 2 + 3 + 4 + 5, NEAR);
    AUTO_FREE struct made_file *last = spending_file(COMP HOT "last = 1\n");
    AUTO_FREE struct made_file *first = spending_file(HOT "last = 1\n");
    AUTO_REPORT struct report *below = merge_both_ways(last, first);
    assert_float_equal(line_s(below, "last = 1"), 10 + 6 + 1 + 2 + 3 + 4, NEAR);
}

static void test_gone_in_class(void **state)
{
    (void)state;
    static const char old_text[] =
        "class A:\n    limit = 9\n    def f(self):\n        return 1\n"
        "    def g(self):\n        def inner():\n            return x()\n        return inner()\n";
    static const char new_text[] = "class A:\n    limit = 9\n    def g(self, n):\n"
                                   "        return None\n";
    AUTO_FREE struct made_file *older = spending_file(old_text);
    AUTO_FREE struct made_file *newer = spending_file(new_text);
    AUTO_REPORT struct report *merged = merge_both_ways(older, newer);
    assert_float_equal(line_s(merged, "    limit = 9"), 2 + 2 + 3 + 4, NEAR);
    assert_float_equal(line_s(merged, "    def g(self, n):") +
                           line_s(merged, "        return None"),
                       3 + 4 + 5 + 6 + 7 + 8, NEAR);
}

/* Classes whose methods have equal names, as older Pythons tell them, changed places. */
static void test_equal_names(void **state)
{
    (void)state;
    AUTO_FREE struct made_file *older =
        spending_file("class A:\n    def __init__(self):\n        self.a = 1\n"
                      "class B:\n    def __init__(self):\n        self.b = 1\n");
    AUTO_FREE struct made_file *newer =
        spending_file("class B:\n    @traced\n    def __init__(self):\n        self.b = 2\n"
                      "class A:\n    def __init__(self):\n        self.a = 2\n");
    for (size_t i = 0; i < 2; i++)
        older->functions[i].line = newer->functions[i].line = "__init__";
    AUTO_REPORT struct report *merged = merge_both_ways(older, newer);
    check_functions(merged, "__init__@2=18 __init__@6=18");
    assert_float_equal(line_s(merged, "        self.a = 2"), 7 + 3, NEAR);
}

/* Of three versions, in every order. */
static void test_every_order(void **state)
{
    (void)state;
    static const size_t orders[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                        { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
    AUTO_FREE struct made_file *first = spending_file(COMP "\ndef gone():\n    pass\n" HOT);
    AUTO_FREE struct made_file *second = spending_file("def gone():\n    return\n" HOT COMP_OTHER);
    AUTO_FREE struct made_file *third = spending_file(HOT "x = 1\n" COMP_NEW);
    const struct report reports[] = { report_of(first, 1), report_of(second, 2),
                                      report_of(third, 3) };
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        const struct report *const parts[] = { &reports[orders[i][0]], &reports[orders[i][1]],
                                               &reports[orders[i][2]] };
        AUTO_REPORT struct report *merged = NULL;
        assert_int_equal(report_merge(parts, 3, "1.2.3", &merged), 0);
        check_functions(merged, "hot@1=90 gone@6=16 comp@7=71");
        assert_float_equal(line_s(merged, "x = 1"), 6 + 5 + 6 + 7 + 1 + 2, NEAR);
        assert_float_equal(line_s(merged, "        t += i"), 4 + 11 + 6, NEAR);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moved_and_edited),
        cmocka_unit_test(test_written_anew),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_gone_in_class),
        cmocka_unit_test(test_equal_names),
        cmocka_unit_test(test_every_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
