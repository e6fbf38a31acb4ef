/* Which bytes of a line are which part, in whole sources, broken ones, and hostile ones. */
#include "output/model/source_colours.h"

#include "output/model/regions.h"
#include "sampler/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

/* A letter for each part, as in the rows below. */
static const char letters[SOURCE_PART_COUNT] = {
    [SOURCE_PLAIN] = '.',   [SOURCE_KEYWORD] = 'k', [SOURCE_CONSTANT] = 'c',  [SOURCE_STRING] = 's',
    [SOURCE_COMMENT] = '#', [SOURCE_DEFINED] = 'd', [SOURCE_DECORATOR] = '@',
};

static void assert_parts(const char *const *lines, const char *const *want, size_t count)
{
    CLEANUP(source_colours_done) struct source_colours colours = { 0 };
    assert_int_equal(source_colours_read(lines, count, &colours), 0);
    for (size_t line = 0; line < count; line++) {
        char got[256] = "";
        uint32_t at = 0;
        size_t length = strcspn(lines[line], "\r\n");
        for (uint32_t byte = 0; byte < length; byte++)
            got[byte] = letters[source_colours_find(&colours, line, byte, &at)];
        assert_string_equal(got, want[line]);
    }
}

static void test_parts(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "@cached(maxsize=9)\n", "async def load(a, b=None):\n",      "    \"\"\"Two\r\n",
        "    lines.\"\"\"\n",   "    return not a is not b # why\n", "    x = f'{a + 1}' + 1.5e3\n",
    };
    static const char *const parts[] = {
        "@@@@@@@@@@@@@@@@@@", "kkkkk.kkk.dddd......cccc..",      "....ssssss",
        "sssssssssssss",      "....kkkkkk.kkk...kkkkkk...#####", "........ss.....c.s...ccccc",
    };
    assert_parts(lines, parts, sizeof lines / sizeof *lines);
}

/* What can be told, is. */
static void test_broken(void **state)
{
    (void)state;
    static const char *const lines[] = { "def f(:\n", "    retrun 12 # no\n", "class C\n",
                                         "'open" };
    CLEANUP(source_colours_done) struct source_colours colours = { 0 };
    uint32_t at = 0;
    assert_int_equal(source_colours_read(lines, 4, &colours), 0);
    assert_int_equal(source_colours_find(&colours, 0, 0, &at), SOURCE_KEYWORD);
    assert_int_equal(source_colours_find(&colours, 1, 4, &at), SOURCE_PLAIN);
    assert_int_equal(source_colours_find(&colours, 1, 11, &at), SOURCE_CONSTANT);
    assert_int_equal(source_colours_find(&colours, 1, 14, &at), SOURCE_COMMENT);
    assert_int_equal(source_colours_find(&colours, 9, 0, &at), SOURCE_PLAIN);
}

static void test_nothing(void **state)
{
    (void)state;
    CLEANUP(source_colours_done) struct source_colours none = { 0 }, empty = { 0 };
    static const char *const lines[] = { NULL, "", "\n" };
    uint32_t at = 0;
    assert_int_equal(source_colours_read(NULL, 0, &none), 0);
    assert_int_equal(source_colours_find(&none, 0, 0, &at), SOURCE_PLAIN);
    assert_int_equal(source_colours_read(lines, 3, &empty), 0);
    assert_int_equal(source_colours_find(&empty, 1, 0, &at), SOURCE_PLAIN);
}

/* Long lines, many lines, and more than is parsed at all. */
static void test_large(void **state)
{
    (void)state;
    static const char *const fillings[] = { "x = 1; ", "(", "'", "\t", "\xff", "# ", "if x:\n" };
    static const size_t sizes[] = { 100000, REGIONS_SIZE_LIMIT + 1 };
    for (size_t i = 0; i < sizeof fillings / sizeof *fillings; i++) {
        for (size_t n = 0; n < 2; n++) {
            AUTO_FREE char *line = calloc(1, sizes[n] + 1);
            assert_non_null(line);
            size_t step = strlen(fillings[i]);
            for (size_t used = 0; used + step <= sizes[n]; used += step)
                memcpy(line + used, fillings[i], step);
            const char *const lines[] = { line, "def f(): pass\n" };
            CLEANUP(source_colours_done) struct source_colours colours = { 0 };
            assert_int_equal(source_colours_read(lines, 2, &colours), 0);
            for (uint32_t byte = 0, at = 0; byte < 1000; byte++)
                assert_true(source_colours_find(&colours, 0, byte, &at) < SOURCE_PART_COUNT);
            assert_true(colours.starts[2] < sizes[n] + 16);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
