/* Two profiles side by side where functions moved, became methods or got another name: each is one
 * row with its lines, and none of its time is lost and new. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/cli/diff_table.h"
#include "output/compare/gate.h"
#include "sampler/base/cleanup.h"
#include "tests/unit/made_file.h"

DEFINE_CLEANUP(struct comparison *, comparison_free)
#define AUTO_COMPARISON CLEANUP(comparison_freep)

static struct report report_of(struct made_file *made)
{
    return (struct report){ .profiler_name = "scalene-attach",
                            .elapsed_time_sec = 1,
                            .files = { &made->file, 1 },
                            .totals = { .elapsed_s = 1, .cpu_python_s = 1 } };
}

/* Seconds are on one line of each. */
static struct comparison *compare(struct made_file *old_file, size_t old_lineno,
                                  struct made_file *new_file, size_t new_lineno)
{
    static struct report old_report, new_report; /* the comparison borrows from them */
    struct comparison *comparison = NULL;
    made_file_spend(old_file, old_lineno, 0.25);
    made_file_spend(new_file, new_lineno, 0.125);
    old_report = report_of(old_file);
    new_report = report_of(new_file);
    assert_int_equal(comparison_new(&old_report, &new_report, &comparison), 0);
    return comparison;
}

static void check(const struct compared_list *list, enum compared_state state, int64_t old_lineno,
                  int64_t lineno)
{
    assert_int_equal(list->count, 1);
    assert_int_equal(list->items[0].state, state);
    assert_int_equal(list->items[0].old_lineno, old_lineno);
    assert_int_equal(list->items[0].lineno, lineno);
    assert_float_equal(change_difference(&list->items[0].changes[METRIC_TIME]), -0.125, 1e-9);
}

#define HOT "def hot(n):\n    t = 0\n    for i in range(n):\n        t += i\n    return t\n"

/* A function of the same name that moved, and its line was edited. */
static void test_moved_and_edited(void **state)
{
    (void)state;
    AUTO_FREE struct made_file *old_file =
        made_file_new("/a.py", "def comp(d):\n    return zlib.compress(d, 9)\n\n" HOT);
    AUTO_FREE struct made_file *new_file =
        made_file_new("/a.py", HOT "\ndef comp(data):\n    return zlib.compress(data, 9)\n");
    AUTO_COMPARISON struct comparison *pair = compare(old_file, 2, new_file, 8);
    check(&pair->lines, COMPARED_EDITED, 2, 8);
    check(&pair->functions, COMPARED_SAME, 1, 7);
}

static char *text_of(const struct comparison *comparison)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    const struct diff_settings settings = { 120, false, 10, "old.json", "new.json" };
    assert_non_null(out);
    assert_int_equal(diff_table_write(out, comparison, &settings), 0);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* A method now: its lines are indented, its name is longer. Both names mean it. */
static void test_into_class(void **state)
{
    (void)state;
    AUTO_FREE struct made_file *old_file = made_file_new(
        "/a.py", "@cached\ndef count(n):\n    total = price(n)\n    return total\n\n" HOT);
    AUTO_FREE struct made_file *new_file =
        made_file_new("/a.py", HOT "\nclass Codec:\n    limit = 9\n\n    @cached\n"
                                   "    def count(self, n):\n        total = price(n)\n"
                                   "        return total\n");
    AUTO_COMPARISON struct comparison *pair = compare(old_file, 3, new_file, 12);
    check(&pair->lines, COMPARED_EDITED, 3, 12);
    check(&pair->functions, COMPARED_MOVED, 1, 10);
    assert_string_equal(pair->functions.items[0].name, "Codec.count");
    assert_string_equal(pair->functions.items[0].old_name, "count");
    AUTO_FREE char *text = text_of(pair);
    assert_non_null(strstr(text, "> a.py:10  Codec.count, was count\n"));
    static const char *const limits[] = { "cpu:count<-10%", "cpu:Codec.count<-10%" };
    for (size_t i = 0; i < 2; i++) {
        char sentence[GATE_SENTENCE_SIZE];
        struct gate gate;
        assert_int_equal(gate_parse(limits[i], &gate, NULL), 0);
        assert_int_equal(gate_check(&gate, pair, sentence), 1);
    }
}

/* Nothing of its name is left, but its lines are. */
static void test_renamed(void **state)
{
    (void)state;
    AUTO_FREE struct made_file *old_file =
        made_file_new("/a.py", "def f(d):\n    first = begin(d)\n    return pack(first)\n\n" HOT);
    AUTO_FREE struct made_file *new_file = made_file_new(
        "/a.py", HOT "\nasync def squeezed(data):\n    first = begin(d)\n    return pack(first)\n");
    AUTO_COMPARISON struct comparison *pair = compare(old_file, 3, new_file, 9);
    check(&pair->lines, COMPARED_MOVED, 3, 9);
    check(&pair->functions, COMPARED_MOVED, 1, 7);
}

/* Others take the place of what is gone: they are not it. */
static void test_replaced(void **state)
{
    (void)state;
    AUTO_FREE struct made_file *old_file =
        made_file_new("/a.py", "def comp(d):\n    return pack(d, 9)\n\n" HOT);
    AUTO_FREE struct made_file *new_file =
        made_file_new("/a.py", "key = lambda x: -x\n" HOT "\ndef other():\n    a = b\n");
    AUTO_COMPARISON struct comparison *pair = compare(old_file, 2, new_file, 9);
    assert_int_equal(pair->functions.count, 2);
    assert_int_equal(pair->lines.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_true(pair->functions.items[i].state >= COMPARED_ADDED);
        assert_true(pair->lines.items[i].state >= COMPARED_ADDED);
    }
}

/* Of one name, those whose lines are matched are the same, and then the first is the first. */
static void test_equal_names(void **state)
{
    (void)state;
    static const char text[] = "a = sorted(x, key=lambda i: i)\nb = sorted(y, key=lambda i: -i)\n";
    AUTO_FREE struct made_file *old_file = made_file_new("/a.py", text);
    AUTO_FREE struct made_file *new_file = made_file_new("/a.py", text);
    old_file->functions[0] = (struct line_stats){ .lineno = 2, .line = "<lambda>" };
    new_file->functions[0] = (struct line_stats){ .lineno = 1, .line = "<lambda>" };
    new_file->functions[1] = (struct line_stats){ .lineno = 2, .line = "<lambda>" };
    new_file->functions[1].cpu_python_s = new_file->functions[0].cpu_python_s = 0.5;
    old_file->file.functions.count = 1;
    new_file->file.functions.count = 2;
    AUTO_COMPARISON struct comparison *pair = compare(old_file, 2, new_file, 2);
    assert_int_equal(pair->functions.count, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct compared *function = &pair->functions.items[i];
        assert_int_equal(function->state, function->lineno == 2 ? COMPARED_SAME : COMPARED_ADDED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moved_and_edited), cmocka_unit_test(test_into_class),
        cmocka_unit_test(test_renamed),          cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_equal_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
