/* Source text is written for pages, and read again as it was, whatever it says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/json/source_escapes.h"
#include "sampler/base/cleanup.h"

#include <string.h>

static void check(const char *source, const char *written)
{
    AUTO_FREE char *text = source_escape(source);
    assert_non_null(text);
    assert_null(strpbrk(text, "&<>"));
    if (written)
        assert_string_equal(text, written);
    source_restore(text);
    assert_string_equal(text, source);
}

static void test_texts(void **state)
{
    (void)state;
    check("", "");
    check("x = 1\n", "x = 1\n");
    check("a < b & c\n", "a \\u003c b \\u0026 c\n");
    check("'\\n' + '\\u00e9\\\\'", "'\\n' + '\\u00e9\\\\'");
    check("len(\"\\u003cb\\u003e\")", "len(\"\\u005cu003cb\\u005cu003e\")");
    check("'\\u0026' '\\u005c'", "'\\u005cu0026' '\\u005cu005c'");
    check("'\\u003C'", "'\\u003C'"); /* no reader undoes it */
    check("\\u005cu003c", "\\u005cu005cu003c");
    check("\\u00<", "\\u00\\u003c");
    check("\\\\u003c", "\\\\u005cu003c");
    check("\\u003", "\\u003");
}

/* Scalene itself writes nothing for a backslash. */
static void test_reads_scalene(void **state)
{
    (void)state;
    char text[] = "a \\u003c b \\u0026 '\\n' \\u00e9 \\u003e";
    source_restore(text);
    assert_string_equal(text, "a < b & '\\n' \\u00e9 >");
}

/* Of pieces that make an escape more often than not. */
static void test_any_text(void **state)
{
    (void)state;
    static const char *const pieces[] = { "\\",   "u",   "0",  "00", "2", "6", "3c", "3C",
                                          "005c", "\\u", "26", "&",  "<", ">", "é",  "\\u003" };
    uint32_t seed = 1;
    for (size_t i = 0; i < 20000; i++) {
        char text[256] = "";
        for (size_t n = 0; n < i % 24; n++) {
            seed = seed * 1103515245u + 12345u;
            strcat(text, pieces[(seed >> 16) % (sizeof pieces / sizeof *pieces)]);
        }
        check(text, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_reads_scalene),
        cmocka_unit_test(test_any_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
