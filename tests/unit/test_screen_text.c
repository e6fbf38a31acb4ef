/* Foreign text on a terminal: what is shown, in how many columns, and that it always fits and ends.
 */
#include "output/cli/screen_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static const struct row {
    const char *text, *shown;
    size_t columns;
} ROWS[] = {
    { "", "", 0 },
    { "plain", "plain", 5 },
    { "größe", "größe", 5 },
    { "测量", "测量", 4 },
    { "ｆｕｌｌ", "ｆｕｌｌ", 8 },
    { "한", "한", 2 },
    { "🐍", "🐍", 2 },
    { "e\xCC\x81", "e\xCC\x81", 1 }, /* a combining accent */
    { "a\xE2\x80\x8D"
      "b",
      "a\xE2\x80\x8D"
      "b",
      2 },                                 /* zero width joiner */
    { "\xE2\x9D\xA4", "\xE2\x9D\xA4", 1 }, /* a heart, and as a picture */
    { "\xE2\x9D\xA4\xEF\xB8\x8F", "\xE2\x9D\xA4\xEF\xB8\x8F", 2 },
    { "1\xEF\xB8\x8F\xE2\x83\xA3", "1\xEF\xB8\x8F\xE2\x83\xA3", 2 }, /* a keycap */
    { "🐍\xEF\xB8\x8F", "🐍\xEF\xB8\x8F", 2 },                         /* a picture anyway */
    { "\xEF\xB8\x8F\xEF\xB8\x8Fx", "\xEF\xB8\x8F\xEF\xB8\x8Fx", 1 }, /* of nothing */
    { "\x01\xEF\xB8\x8F\xEF\xB8\x8F", "\\x01\xEF\xB8\x8F\xEF\xB8\x8F", 5 },
    { "\033[31m", "\\x1b[31m", 8 },
    { "a\nb\tc\r", "a\\x0ab\\x09c\\x0d", 15 },
    { "\x7F", "\\x7f", 4 },
    { "\xC2\x9B", "\\x9b", 4 }, /* C1: an escape sequence's start on some terminals */
    { "\xE2\x80\xAE"
      "abc",
      "\\u202eabc", 9 },              /* right-to-left override */
    { "\xE2\x81\xA6", "\\u2066", 6 }, /* isolate */
    { "\xFF", "\xEF\xBF\xBD", 1 },
    { "\xC3(", "\xEF\xBF\xBD(", 2 },               /* cut short */
    { "\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD", 2 }, /* overlong */
    { "\xE0\x80\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", 3 },
    { "\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", 3 }, /* half a surrogate pair */
    { "\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD",
      4 }, /* beyond Unicode */
    { "\xE2\x82", "\xEF\xBF\xBD\xEF\xBF\xBD", 2 },
};

static void test_shown(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char shown[256];
        assert_int_equal(screen_text(ROWS[i].text, shown, sizeof shown), ROWS[i].columns);
        assert_string_equal(shown, ROWS[i].shown);
    }
}

/* In a buffer of any size, and that of exactly its size so that a sanitizer sees one byte more. */
static void test_always_fits(void **state)
{
    (void)state;
    static const char text[] = "aß测🐍\033\xFF\xE2\x80\xAE";
    char whole[64];
    screen_text(text, whole, sizeof whole);
    for (size_t size = 1; size <= sizeof whole; size++) {
        char *shown = malloc(size);
        assert_non_null(shown);
        screen_text(text, shown, size);
        assert_true(strlen(shown) < size);
        assert_memory_equal(shown, whole, strlen(shown));
        free(shown);
    }
}

/* Any bytes: what comes out has no control bytes, and shown again is the same. */
static void test_any_bytes(void **state)
{
    (void)state;
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 20000; round++) {
        char text[16] = "", shown[128], again[128];
        for (size_t i = 0; i < 12; i++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            text[i] = (char)(random >> 24 | (random & 1) << 7);
        }
        size_t columns = screen_text(text, shown, sizeof shown);
        for (const char *at = shown; *at; at++)
            assert_true((unsigned char)*at >= ' ' && *at != 0x7F);
        assert_int_equal(screen_text(shown, again, sizeof again), columns);
        assert_string_equal(again, shown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shown),
        cmocka_unit_test(test_always_fits),
        cmocka_unit_test(test_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
