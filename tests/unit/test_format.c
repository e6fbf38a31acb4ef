/* The text of values of every kind is what tests/golden/format.txt says; the page's text.js is
 * held to the same file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "output/model/format.h"
#include "tests/unit/golden.h"

static FILE *lines;

/* kind, value as JSON, text */
static void put(enum value_kind kind, const char *json, const void *value)
{
    char text[256];
    size_t length = format_value(kind, value, text, sizeof text);
    assert_int_equal(length, strlen(text));
    fprintf(lines, "%s\t%s\t%s\n", value_kind_name(kind), json, text);
}

static void put_floats(enum value_kind kind, const double *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char json[32];
        snprintf(json, sizeof json, "%.10g", numbers[i]);
        put(kind, json, &numbers[i]);
    }
}

static void put_integers(enum value_kind kind)
{
    static const int64_t numbers[] = { 0,      1,      42,      99999,     100000,     123456,
                                       999499, 999500, 1234567, 999999999, 1000000000, INT64_MAX };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char json[32];
        snprintf(json, sizeof json, "%lld", (long long)numbers[i]);
        put(kind, json, &numbers[i]);
    }
}

static void put_numbers(void)
{
    static const double percents[] = { 0,     0.001, 0.0499, 0.05,  0.94,  1,     12.34,
                                       99.94, 99.95, 100,    251.4, 1e300, -1e300 };
    static const double points[] = { 0, 0.001, 0.1, 1.25, 34.28, 1e300 };
    static const double fractions[] = { 0, 0.0049, 0.005, 0.25, 0.996, 1, 1e300 };
    static const double seconds[] = { 0,      2e-7,   4.5e-5, 0.0009994,    0.0009995, 0.0123,
                                      0.9994, 0.9995, 1.234,  59.9,         99.95,     3599.4,
                                      3599.5, 7260,   360000, 3.5999999e10, 3.6e10,    1e300,
                                      -1e300 };
    static const double megabytes[] = { 0,    1e-7,  0.0005,  0.5, 0.9763, 1,      3.86,
                                        12.5, 999.4, 1000000, 5e9, 5e15,   1.2e19, 1e300 };
    static const double plain[] = { 0, 0.04, 1, 2.55, 1234.5, 9999999999, 1e10, 1e300 };
    put_floats(VALUE_PERCENT, percents, sizeof percents / sizeof *percents);
    put_floats(VALUE_POINTS, points, sizeof points / sizeof *points);
    put_floats(VALUE_FRACTION, fractions, sizeof fractions / sizeof *fractions);
    put_floats(VALUE_SECONDS, seconds, sizeof seconds / sizeof *seconds);
    put_floats(VALUE_MEGABYTES, megabytes, sizeof megabytes / sizeof *megabytes);
    put_floats(VALUE_RATE, megabytes, sizeof megabytes / sizeof *megabytes);
    put_floats(VALUE_NUMBER, plain, sizeof plain / sizeof *plain);
}

static void put_words(void)
{
    const bool no = false, yes = true;
    const char *none = NULL, *text = "naïve", *source = "    x = 1\n";
    put(VALUE_FLAG, "false", &no);
    put(VALUE_FLAG, "true", &yes);
    put(VALUE_TEXT, "null", &none);
    put(VALUE_TEXT, "\"naïve\"", &text);
    put(VALUE_SOURCE, "\"    x = 1\\n\"", &source);
}

static void put_lists(void)
{
    struct point points[12] = { { 0, 0 } };
    for (size_t i = 0; i < 12; i++)
        points[i] = (struct point){ (double)i, (double)(i % 6) };
    const char *names[] = { "Task-1", "Task-2" };
    double moments[] = { 1.5, 2.5 };
    struct native_share natives[] = { { "sha256_block", "/usr/lib/libcrypto.so.3", 1.5 },
                                      { "", "[vdso]", 0.002 } };
    put(VALUE_SPARK, "[]", &(struct point_list){ points, 0 });
    put(VALUE_SPARK, "[[0, 0.0]]", &(struct point_list){ points, 1 });
    put(VALUE_SPARK, "[[0, 0.0], [1, 1.0], [2, 2.0], [3, 3.0], [4, 4.0], [5, 5.0]]",
        &(struct point_list){ points, 6 });
    put(VALUE_SPARK,
        "[[0, 0.0], [1, 1.0], [2, 2.0], [3, 3.0], [4, 4.0], [5, 5.0], "
        "[6, 0.0], [7, 1.0], [8, 2.0], [9, 3.0], [10, 4.0], [11, 5.0]]",
        &(struct point_list){ points, 12 });
    put(VALUE_MOMENTS, "[]", &(struct number_list){ moments, 0 });
    put(VALUE_MOMENTS, "[1.5, 2.5]", &(struct number_list){ moments, 2 });
    put(VALUE_TEXTS, "[]", &(struct text_list){ names, 0 });
    put(VALUE_TEXTS, "[\"Task-1\", \"Task-2\"]", &(struct text_list){ names, 2 });
    put(VALUE_NATIVE, "[]", &(struct native_list){ natives, 0 });
    put(VALUE_NATIVE,
        "[{\"module\": \"/usr/lib/libcrypto.so.3\", \"seconds\": 1.5, \"symbol\": "
        "\"sha256_block\"}, "
        "{\"module\": \"[vdso]\", \"seconds\": 0.002, \"symbol\": \"\"}]",
        &(struct native_list){ natives, 2 });
    put(VALUE_NATIVE, "[{\"module\": \"\", \"seconds\": 1.5, \"symbol\": \"\"}]",
        &(struct native_list){ &(struct native_share){ "", "", 1.5 }, 1 });
    put(VALUE_WAITS, "{}", &(struct wait_times){ { 0 } });
    put(VALUE_WAITS, "{\"sleep\": 1.5}", &(struct wait_times){ { [4] = 1.5 } });
    put(VALUE_WAITS, "{\"gil\": 0.25, \"lock\": 0.5, \"io\": 30.0}",
        &(struct wait_times){ { [0] = 0.25, [2] = 0.5, [3] = 30 } });
    put(VALUE_WAITS, "{\"gil\": 1.0, \"cpu\": 1.0}", &(struct wait_times){ { 1, 1 } });
    put(VALUE_WAITS, "{\"gil\": 1.0, \"cpu\": 1e300}", &(struct wait_times){ { 1, 1e300 } });
}

static void test_golden(void **state)
{
    (void)state;
    AUTO_FREE char *text = NULL;
    size_t size = 0;
    lines = open_memstream(&text, &size);
    put_integers(VALUE_LINE);
    put_integers(VALUE_COUNT);
    put_numbers();
    put_words();
    put_lists();
    fclose(lines);
    assert_golden("format.txt", text);
}

/* Every kind is in the golden file, or text.js has nothing to keep to. */
static void test_kinds(void **state)
{
    (void)state;
    for (int kind = 0; kind < VALUE_KIND_COUNT; kind++)
        for (int other = 0; other < kind; other++)
            assert_string_not_equal(value_kind_name((enum value_kind)kind),
                                    value_kind_name((enum value_kind)other));
}

static void test_cut(void **state)
{
    (void)state;
    char text[5] = "----";
    const char *long_text = "abcdefgh";
    assert_int_equal(format_value(VALUE_TEXT, &long_text, text, sizeof text), 8);
    assert_string_equal(text, "abcd");
    const char *names[] = { "abc", "def" };
    struct text_list list = { names, 2 };
    assert_int_equal(format_value(VALUE_TEXTS, &list, text, sizeof text), 8);
    assert_string_equal(text, "abc,");
    assert_int_equal(format_value(VALUE_TEXTS, &list, NULL, 0), 8);
}

/* What is no number says nothing, wherever it stands. */
static void test_no_numbers(void **state)
{
    (void)state;
    const double numbers[] = { NAN, INFINITY, -INFINITY, 1e301 };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char text[64];
        for (int kind = VALUE_PERCENT; kind <= VALUE_NUMBER; kind++)
            assert_int_equal(format_value((enum value_kind)kind, &numbers[i], text, sizeof text),
                             0);
        struct wait_times waits = { { numbers[i], 1 } };
        format_value(VALUE_WAITS, &waits, text, sizeof text);
        assert_string_equal(text, "cpu 1.00s");
        struct point points[] = { { 0, 1 }, { 1, numbers[i] } };
        format_value(VALUE_SPARK, &(struct point_list){ points, 2 }, text, sizeof text);
        assert_string_equal(text, "█▁");
    }
}

static void test_sides(void **state)
{
    (void)state;
    assert_true(format_is_number(VALUE_PERCENT));
    assert_true(format_is_number(VALUE_COUNT));
    assert_false(format_is_number(VALUE_SOURCE));
    assert_false(format_is_number(VALUE_SPARK));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),     cmocka_unit_test(test_kinds), cmocka_unit_test(test_cut),
        cmocka_unit_test(test_no_numbers), cmocka_unit_test(test_sides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
