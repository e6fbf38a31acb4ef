/* Lines of two versions of a file find each other: what stayed, what moved, and what was edited. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/model/line_match.h"
#include "tests/unit/made_file.h"

/* As "1=1 2>4 3~2 4-": line 1 is line 1, line 2 moved to 4, 3 was edited, 4 is gone. */
static void match_tell(const char *old_lines, const char *new_lines, char *into, size_t size)
{
    static const char marks[] = {
        [LINE_GONE] = '-', [LINE_KEPT] = '=', [LINE_MOVED] = '>', [LINE_EDITED] = '~'
    };
    AUTO_FREE struct made_file *old_text = made_file_new("/a.py", old_lines);
    AUTO_FREE struct made_file *new_text = made_file_new("/a.py", new_lines);
    AUTO_LINE_MATCH struct line_match match = { 0 };
    size_t used = 0;
    assert_int_equal(line_match_init(&match, &old_text->file, &new_text->file), 0);
    assert_int_equal(match.count, old_text->file.lines.count);
    *into = '\0';
    for (size_t i = 0; i < match.count; i++) {
        used += (size_t)snprintf(into + used, size - used, "%s%zu%c", i ? " " : "", i + 1,
                                 marks[match.fates[i]]);
        if (match.matches[i] != LINE_NONE)
            used += (size_t)snprintf(into + used, size - used, "%u", match.matches[i] + 1);
    }
}

#define ASSERT_MATCH(old_lines, new_lines, told)                                                   \
    do {                                                                                           \
        char got_[8192];                                                                           \
        match_tell(old_lines, new_lines, got_, sizeof got_);                                       \
        assert_string_equal(got_, told);                                                           \
    } while (0)

static void test_kept(void **state)
{
    (void)state;
    ASSERT_MATCH("", "a = 1\n", "");
    ASSERT_MATCH("a = 1\n", "", "1-");
    ASSERT_MATCH("a = 1\nb = 2\n", "a = 1\nb = 2\n", "1=1 2=2");
    ASSERT_MATCH("a = 1\nb = 2\n", "a = 1  \r\nb = 2\n", "1=1 2=2");
    ASSERT_MATCH("first\nsecond\nthird\n", "first\ninserted\nsecond\nthird\n", "1=1 2=3 3=4");
    ASSERT_MATCH("first\nsecond\nthird\n", "first\nthird\n", "1=1 2- 3=2");
}

/* Lines that are everywhere follow those that are there once. */
static void test_repeated(void **state)
{
    (void)state;
    ASSERT_MATCH("def a():\n    pass\n\ndef b():\n    pass\n",
                 "def c():\n    pass\n\ndef a():\n    pass\n\ndef b():\n    pass\n",
                 "1=4 2=5 3=6 4=7 5=8");
    ASSERT_MATCH("x\nx\nx\n", "x\nx\n", "1=1 2=2 3-");
    ASSERT_MATCH("x\ny\nx\ny\n", "y\nx\ny\nx\n", "1- 2=1 3=2 4=3");
}

static void test_moved(void **state)
{
    (void)state;
    ASSERT_MATCH(
        "import os\ndef first():\n    return 1\n\ndef second():\n    a()\n    b()\n    c()\n",
        "import os\ndef second():\n    a()\n    b()\n    c()\ndef first():\n    return 1\n\n",
        "1=1 2>6 3>7 4>8 5=2 6=3 7=4 8=5");
    ASSERT_MATCH("}\nkept\n", "kept\n}\n", "1- 2=1"); /* such a line is everywhere */
}

static void test_edited(void **state)
{
    (void)state;
    ASSERT_MATCH("start\n    total += price(x)\nend of it\n",
                 "start\n    total += price(x, tax)\nend of it\n", "1=1 2~2 3=3");
    ASSERT_MATCH("start\ntotal += 1\nend of it\n", "start\n    total += 1\nend of it\n",
                 "1=1 2~2 3=3");
    ASSERT_MATCH("start\nabc(def)\nend of it\n", "start\nxyz = 17\nend of it\n", "1=1 2- 3=3");
    ASSERT_MATCH("start\nf(a, b)\ng(c, d)\nend of it\n",
                 "start\nnew = line\nf(a, b, e)\ng(c, d, e)\nend of it\n", "1=1 2~3 3~4 4=5");
}

#define HOT "def hot(n):\n    t = 0\n    for i in range(n):\n        t += i\n    return t\n"
#define COMP                                                                                       \
    "def comp(d):\n    t = 0\n    for k in range(9):\n        t += pack(d, 9)\n    return t\n"
#define COMP_EDITED                                                                                \
    "def comp(data):\n    t = 0\n    for k in range(9):\n        t += pack(data, 9)\n    return "  \
    "t\n"

/* Lines that are in both stay with their function, and what was edited is looked for in it. */
static void test_swapped_functions(void **state)
{
    (void)state;
    ASSERT_MATCH(HOT "\n" COMP, COMP "\n" HOT, "1>7 2>8 3>9 4>10 5>11 6>6 7=1 8=2 9=3 10=4 11=5");
    ASSERT_MATCH(HOT "\n" COMP, COMP_EDITED "\n" HOT,
                 "1=7 2=8 3=9 4=10 5=11 6>6 7~1 8>2 9>3 10~4 11>5");
    ASSERT_MATCH(COMP "\n" HOT, HOT "\n" COMP_EDITED,
                 "1~7 2>8 3>9 4~10 5>11 6>6 7=1 8=2 9=3 10=4 11=5");
}

/* By its lines, where it has another name; and never into a function that has become another. */
static void test_renamed_function(void **state)
{
    (void)state;
    ASSERT_MATCH("def old_name(d):\n    first = begin(d)\n    return pack(first, 9)\n\n" HOT,
                 HOT
                 "\ndef another(data):\n    first = begin(d)\n    return pack(first, level=9)\n",
                 "1~7 2>8 3~9 4- 5=1 6=2 7=3 8=4 9=5");
    ASSERT_MATCH(HOT "\ndef gone(d):\n    return g\n", HOT "\nlast = 1\n",
                 "1=1 2=2 3=3 4=4 5=5 6=6 7- 8-");
    ASSERT_MATCH("def gone(d):\n    return g\n\n" HOT, HOT, "1- 2- 3- 4=1 5=2 6=3 7=4 8=5");
}

/* All lines of a function that became a method are indented anew. */
static void test_into_class(void **state)
{
    (void)state;
    ASSERT_MATCH(COMP "\n" HOT,
                 "class Codec:\n    def comp(self, d):\n        t = 0\n        for k in range(9):\n"
                 "            t += pack(d, 9)\n        return t\n\n" HOT,
                 "1~2 2~3 3~4 4~5 5~6 6=7 7=8 8=9 9=10 10=11 11=12");
    ASSERT_MATCH("class A:\n    def __init__(self):\n        self.a = 1\n\n"
                 "class B:\n    def __init__(self):\n        self.b = 1\n",
                 "class B:\n    def __init__(self):\n        self.b = 2\n\n"
                 "class A:\n    def __init__(self):\n        self.a = 2\n",
                 "1>5 2>6 3~7 4- 5=1 6=2 7~3");
}

/* Regions of a profile may be anything. */
static void test_strange_regions(void **state)
{
    (void)state;
    static const int64_t ends[] = { 0, -1, 1, 3, 4, 1000, INT64_MAX, INT64_MIN };
    struct line_stats lines[4];
    struct report_file file = { .lines = { lines, 4 } };
    for (size_t i = 0; i < 64; i++) {
        AUTO_LINE_MATCH struct line_match match = { 0 };
        for (size_t n = 0; n < 4; n++)
            lines[n] = (struct line_stats){ .line = n % 2 ? "def f(x):" : "  class f:",
                                            .start_function_line = (int64_t)n + (i % 3 > 0),
                                            .end_function_line = ends[(i + n * i / 8) % 8] };
        assert_int_equal(line_match_init(&match, &file, &file), 0);
        for (size_t n = 0; n < 4; n++)
            assert_int_equal(match.matches[n], n);
    }
}

/* Without a source on one side, lines are numbers. */
static void test_blank(void **state)
{
    (void)state;
    ASSERT_MATCH("\n\n\n", "a = 1\nb = 2\n", "1=1 2=2 3-");
    ASSERT_MATCH("a = 1\nb = 2\n", "\n\n\n", "1=1 2=2");
}

/* Each new line is the match of one old line at most, whatever the texts are. */
static void check_one_to_one(const char *old_lines, const char *new_lines)
{
    AUTO_FREE struct made_file *old_text = made_file_new("/a.py", old_lines);
    AUTO_FREE struct made_file *new_text = made_file_new("/a.py", new_lines);
    AUTO_LINE_MATCH struct line_match match = { 0 };
    AUTO_FREE unsigned char *taken = calloc(MADE_LINES_MAX, 1);
    assert_int_equal(line_match_init(&match, &old_text->file, &new_text->file), 0);
    for (size_t i = 0; i < match.count; i++) {
        bool is_gone = match.matches[i] == LINE_NONE;
        assert_true(is_gone == (match.fates[i] == LINE_GONE));
        if (is_gone)
            continue;
        assert_true(match.matches[i] < new_text->file.lines.count);
        assert_int_equal(taken[match.matches[i]]++, 0);
        if (match.fates[i] != LINE_EDITED)
            assert_string_equal(old_text->lines[i].line, new_text->lines[match.matches[i]].line);
    }
}

static void words_write(char *into, unsigned *seed, unsigned words)
{
    size_t used = 0;
    for (size_t i = 0; i < 2000; i++) {
        *seed = *seed * 1103515245u + 12345u;
        used += (size_t)sprintf(into + used, "value_%u\n", (*seed >> 16) % words);
    }
}

static void test_any_text(void **state)
{
    (void)state;
    AUTO_FREE char *old_lines = malloc(65536);
    AUTO_FREE char *new_lines = malloc(65536);
    unsigned seed = 1;
    for (unsigned words = 1; words < 20000; words *= 3) {
        words_write(old_lines, &seed, words);
        words_write(new_lines, &seed, words);
        check_one_to_one(old_lines, new_lines);
        check_one_to_one(old_lines, old_lines);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_repeated),
        cmocka_unit_test(test_moved),
        cmocka_unit_test(test_edited),
        cmocka_unit_test(test_any_text),
        cmocka_unit_test(test_blank),
        cmocka_unit_test(test_swapped_functions),
        cmocka_unit_test(test_renamed_function),
        cmocka_unit_test(test_into_class),
        cmocka_unit_test(test_strange_regions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
