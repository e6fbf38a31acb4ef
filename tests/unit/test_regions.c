/* Regions, functions and imports: against what Scalene says, in sources that are broken or newer
 * than the grammar, and in texts that are no Python. */
#include "tests/regions/regions_text.h"

#include "output/model/source_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "tests/unit/golden.h"

static struct source_regions *regions_of(const char *text, size_t size)
{
    struct source_regions *regions = NULL;
    assert_int_equal(source_regions_new(text, size, &regions), 0);
    return regions;
}

static char *text_read(const char *name)
{
    char path[1024];
    char *text = NULL;
    size_t room = 0;
    snprintf(path, sizeof path, "%.*s/../golden/%s", (int)(strrchr(__FILE__, '/') - __FILE__),
             __FILE__, name);
    AUTO_FCLOSE FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_true(getdelim(&text, &room, '\0', file) > 0);
    return text;
}

static char *regions_text(const char *text)
{
    AUTO_REGIONS struct source_regions *regions = regions_of(text, strlen(text));
    char *written = NULL;
    size_t size;
    FILE *file = open_memstream(&written, &size);
    assert_non_null(file);
    regions_write(file, regions);
    fclose(file);
    return written;
}

/* Scalene wrote these goldens (tests/regions/compare.py --write). */
static void golden_check(const char *source, const char *golden)
{
    AUTO_FREE char *text = text_read(source), *got = regions_text(text);
    assert_golden(golden, got);
}

static void test_check_table(void **state)
{
    (void)state;
    golden_check("regions/check_table.py", "regions/check_table.txt");
}

static void test_statements(void **state)
{
    (void)state;
    golden_check("regions/statements.py", "regions/statements.txt");
}

/* The same, however its lines end. */
static void test_line_ends(void **state)
{
    static const char *const ENDS[] = { "\r", "\r\n" };
    AUTO_FREE char *text = text_read("regions/statements.py");
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        AUTO_FREE char *bytes = calloc(2, strlen(text) + 1), *read = NULL;
        size_t size = 0;
        for (const char *at = text; *at; at++)
            size += (size_t)sprintf(bytes + size, "%.*s", 2,
                                    *at == '\n' ? ENDS[i] : (char[]){ *at, 0 });
        assert_int_equal(source_text_new(bytes, size, &read, &size), 0);
        AUTO_FREE char *got = regions_text(read);
        assert_golden("regions/statements.txt", got);
    }
}

static const struct line_regions *line_of(const struct source_regions *regions, size_t number)
{
    assert_in_range(number, 1, regions->line_count);
    return &regions->lines[number - 1];
}

#define assert_range(range, from, to)                                                              \
    do {                                                                                           \
        assert_int_equal((range).first, from);                                                     \
        assert_int_equal((range).last, to);                                                        \
    } while (0)

/* Python 3.14 and 3.15; the grammar knows none of it, and it harms nothing but its own line. */
static void test_newer(void **state)
{
    static const char SOURCE[] = "lazy import json\n"
                                 "lazy from a import b\n"
                                 "text = t\"hi {a}\"\n"
                                 "def f():\n"
                                 "    try:\n"
                                 "        pass\n"
                                 "    except A, B:\n"
                                 "        y = 1\n"
                                 "    for i in tr'''a\n"
                                 "    b''':\n"
                                 "        z = [*a for a in b]\n"
                                 "    return 1\n"
                                 "def g(): return {**a for a in b}\n";
    AUTO_REGIONS struct source_regions *regions = regions_of(SOURCE, strlen(SOURCE));
    (void)state;
    assert_int_equal(regions->line_count, 13);
    assert_range(line_of(regions, 3)->region, 3, 3);
    assert_range(line_of(regions, 7)->region, 4, 12);
    assert_range(line_of(regions, 11)->region, 9, 11);
    assert_range(line_of(regions, 12)->function, 4, 12);
    assert_range(line_of(regions, 13)->function, 13, 13);
    assert_int_equal(regions->function_count, 2);
    assert_int_equal(regions->import_count, 2);
    assert_string_equal(regions->imports[0].text, "import json");
    assert_string_equal(regions->imports[1].text, "from a import b");
}

/* What stands before an error keeps its regions; so does what stands a statement behind it, unless
 * a bracket is open. */
static void test_broken(void **state)
{
    static const char *const ERRORS[] = {
        "x = = 1",      "print 'old'",     "def (:",     "return )",
        "$ ? !",        "x = 'no end",     "else:",      "elif x:",
        "class :",      "import",          "@",          "for in x:",
        "if x",         "lambda",          "while True", "try:",
        "\x01\x02\xff", "exec \"x\" in y", "def g():",   "x = '''",
        "x = (",        "x = [1, 2",
    };
    (void)state;
    for (size_t i = 0; i < sizeof ERRORS / sizeof ERRORS[0]; i++) {
        char source[256];
        int size = snprintf(source, sizeof source,
                            "def before():\n    for i in x:\n        pass\n\n%s\n\n"
                            "def between():\n    return 1\n\ny = 1\n\n"
                            "def after():\n    while x:\n        y = 1\n",
                            ERRORS[i]);
        bool is_open = strpbrk(ERRORS[i], "([") && !strpbrk(ERRORS[i], ":)");
        AUTO_REGIONS struct source_regions *regions = regions_of(source, (size_t)size);
        assert_int_equal(regions->line_count, 14);
        assert_range(line_of(regions, 2)->region, 2, 3);
        assert_range(line_of(regions, 3)->function, 1, 3);
        if (!is_open) {
            assert_range(line_of(regions, 14)->region, 13, 14);
            assert_range(line_of(regions, 14)->function, 12, 14);
            assert_range(line_of(regions, 14)->loop, 13, 14);
        }
    }
}

static void test_empty(void **state)
{
    AUTO_REGIONS struct source_regions *nothing = regions_of("", 0),
                                       *blank = regions_of("\n\n \n", 4),
                                       *no_end = regions_of("x = 1", 5);
    (void)state;
    assert_int_equal(nothing->line_count, 0);
    assert_int_equal(nothing->function_count, 0);
    assert_int_equal(blank->line_count, 3);
    assert_range(line_of(blank, 3)->region, 3, 3);
    assert_int_equal(no_end->line_count, 1);
    assert_range(line_of(no_end, 1)->loop, 1, 1);
    assert_range(line_of(no_end, 1)->function, 0, 0);
}

static void test_profiled(void **state)
{
    static const struct {
        const char *decorator;
        bool is_profiled;
    } ROWS[] = {
        { "profile", true },
        { "scalene.profile", true },
        { "scalene.scalene_profiler.profile", true },
        { "scalene_profiler.profile", true },
        { "app.profile", false },
        { "profiles", false },
        { "profile.start", false },
        { "noprofile", false },
        { "cache(profile)", false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        char source[256];
        int size = snprintf(source, sizeof source, "@first\n@%s\n@last\ndef f(): pass\n",
                            ROWS[i].decorator);
        AUTO_REGIONS struct source_regions *regions = regions_of(source, (size_t)size);
        assert_int_equal(regions->function_count, 1);
        assert_int_equal(regions->functions[0].is_profiled, ROWS[i].is_profiled);
        assert_int_equal(regions->functions[0].decorators.count, 3);
        assert_string_equal(regions->functions[0].decorators.items[1], ROWS[i].decorator);
    }
}

/* What a file makes or imports by itself is another one, but not what it only falls back on. */
static void test_own_profile(void **state)
{
    static const struct {
        const char *head;
        bool is_profiled;
    } ROWS[] = {
        { "def profile(f): return f\n", false },
        { "@wraps\ndef profile(f):\n    return f\n", false },
        { "class profile: pass\n", false },
        { "from tools import profile\n", false },
        { "from .tools import (a,\n    profile, b)\n", false },
        { "from tools import trace as profile\n", false },
        { "import tools as profile, os\n", false },
        { "try:\n    profile\nexcept NameError:\n    def profile(f): return f\n", true },
        { "try:\n    from tools import profile\nexcept ImportError:\n    pass\n", true },
        { "if 'profile' not in globals():\n    def profile(f): return f\n", true },
        { "class A:\n    def profile(self): pass\n", true },
        { "def other():\n    from tools import profile\n", true },
        { "from scalene import profile\n", true },
        { "from scalene.scalene_profiler import profile\n", true },
        { "from builtins import profile\n", true },
        { "import scalene\n", true },
        { "from tools import profile as p\n", true },
        { "from profile import run\n", true },
        { "from tools import profiled, my_profile\n", true },
        { "import tools.profile\n", true },
    };
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        char source[256];
        int size = snprintf(source, sizeof source, "%s@profile\ndef last(): pass\n", ROWS[i].head);
        AUTO_REGIONS struct source_regions *regions = regions_of(source, (size_t)size);
        if (regions->functions[regions->function_count - 1].is_profiled != ROWS[i].is_profiled)
            fail_msg("after: %s", ROWS[i].head);
    }
    const char dotted[] = "def profile(f): return f\n@scalene.profile\ndef last(): pass\n";
    AUTO_REGIONS struct source_regions *regions = regions_of(dotted, sizeof dotted - 1);
    assert_true(regions->functions[1].is_profiled);
}

/* `head` and `tail` around `count` times `part`. */
static char *text_repeat(const char *head, const char *part, size_t count, const char *tail)
{
    char *text = malloc(strlen(head) + strlen(part) * count + strlen(tail) + 1), *at = text;
    assert_non_null(text);
    at = stpcpy(at, head);
    while (count-- > 0)
        at = stpcpy(at, part);
    stpcpy(at, tail);
    return text;
}

static void test_long(void **state)
{
    enum { FUNCTIONS = 40000 };
    AUTO_FREE char *text =
        text_repeat("", "def f(a, b):\n    for i in range(a):\n        x = a + b\n    return x\n\n",
                    FUNCTIONS, "");
    AUTO_REGIONS struct source_regions *regions = regions_of(text, strlen(text));
    (void)state;
    assert_int_equal(regions->line_count, 5 * FUNCTIONS);
    assert_int_equal(regions->function_count, FUNCTIONS);
    assert_range(line_of(regions, 5 * FUNCTIONS - 2)->region, 5 * FUNCTIONS - 3, 5 * FUNCTIONS - 2);
    assert_range(line_of(regions, 5 * FUNCTIONS - 1)->function, 5 * FUNCTIONS - 4,
                 5 * FUNCTIONS - 1);
}

/* Each elif lies inside the one before. */
static void test_elifs(void **state)
{
    enum { ELIFS = 20000, LAST = 2 + 2 * ELIFS };
    AUTO_FREE char *text = text_repeat("if a:\n pass\n", "elif b:\n pass\n", ELIFS, "");
    AUTO_REGIONS struct source_regions *regions = regions_of(text, strlen(text));
    (void)state;
    assert_int_equal(regions->line_count, LAST);
    assert_range(line_of(regions, 1)->loop, 1, LAST);
    assert_range(line_of(regions, 3)->loop, 3, LAST);
    assert_range(line_of(regions, LAST - 1)->loop, LAST - 1, LAST);
    assert_range(line_of(regions, LAST)->loop, LAST, LAST);
}

static char *functions_nest(int count)
{
    char *text = calloc((size_t)count + 1, (size_t)count + 20), *at = text;
    assert_non_null(text);
    for (int i = 0; i < count; i++)
        at += sprintf(at, "%*sdef f():\n", i, "");
    sprintf(at, "%*spass\n", count, "");
    return text;
}

/* No stack is as deep as a source can be, and no name as long. */
static void test_deep(void **state)
{
    enum { BRACKETS = 50000, DEEP = 90, DEEPER = 1500 }; /* Python has 100 levels */
    AUTO_FREE char *opened = text_repeat("x = ", "(", BRACKETS, "\n"),
                   *nested = text_repeat("x = ", "[", BRACKETS, ""),
                   *negated = text_repeat("def f():\n  return ", "not ", BRACKETS, "x\n"),
                   *deep = functions_nest(DEEP), *deeper = functions_nest(DEEPER);
    AUTO_REGIONS struct source_regions *regions = regions_of(negated, strlen(negated));
    (void)state;
    assert_range(line_of(regions, 2)->function, 1, 2);

    AUTO_FREE char *closed = text_repeat(nested, "]", BRACKETS, "\n");
    AUTO_REGIONS struct source_regions *in_brackets = regions_of(closed, strlen(closed)),
                                       *in_open = regions_of(opened, strlen(opened));
    assert_int_equal(in_brackets->line_count, 1);
    assert_int_equal(in_open->line_count, 1);

    AUTO_REGIONS struct source_regions *in_deep = regions_of(deep, strlen(deep)),
                                       *in_deeper = regions_of(deeper, strlen(deeper));
    assert_int_equal(in_deep->function_count, DEEP);
    assert_range(line_of(in_deep, DEEP + 1)->function, DEEP, DEEP + 1);
    assert_range(line_of(in_deep, 1)->function, 1, DEEP + 1);
    assert_string_equal(in_deep->functions[2].qualified_name, "f.<locals>.f.<locals>.f");
    assert_int_equal(in_deeper->line_count, DEEPER + 1);
    for (size_t i = 0; i < in_deeper->function_count; i++)
        assert_true(strlen(in_deeper->functions[i].qualified_name) < 2000);
}

/* Effort has an end: this would take the parser minutes. */
static void test_junk(void **state)
{
    AUTO_FREE char *text =
        text_repeat("def f():\n  pass\n", "$ ) ] } def class ? ( [ {\n", 6000, "");
    AUTO_REGIONS struct source_regions *regions = regions_of(text, strlen(text));
    (void)state;
    assert_int_equal(regions->line_count, 6002);
    assert_range(line_of(regions, 6002)->loop, 6002, 6002);
}

static void test_too_long(void **state)
{
    AUTO_FREE char *text = text_repeat("def f():\n", "  pass\n", REGIONS_SIZE_LIMIT / 7, "");
    AUTO_REGIONS struct source_regions *regions = regions_of(text, strlen(text));
    (void)state;
    assert_int_equal(regions->line_count, 1 + REGIONS_SIZE_LIMIT / 7);
    assert_int_equal(regions->function_count, 0);
    assert_range(line_of(regions, 2)->region, 2, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check_table), cmocka_unit_test(test_statements),
        cmocka_unit_test(test_line_ends),   cmocka_unit_test(test_newer),
        cmocka_unit_test(test_broken),      cmocka_unit_test(test_empty),
        cmocka_unit_test(test_profiled),    cmocka_unit_test(test_own_profile),
        cmocka_unit_test(test_long),        cmocka_unit_test(test_elifs),
        cmocka_unit_test(test_deep),        cmocka_unit_test(test_junk),
        cmocka_unit_test(test_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
