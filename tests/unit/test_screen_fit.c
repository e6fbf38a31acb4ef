/* Foreign text cut to columns: where the cut falls, what it costs, and that paths keep their end.
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
    const char *text;
    size_t limit;
    const char *shown;
    size_t columns;
} TEXTS[] = {
    { "", 0, "", 0 },
    { "plain", 0, "", 0 },
    { "plain", 1, "…", 1 },
    { "plain", 4, "pla…", 4 },
    { "plain", 5, "plain", 5 },
    { "a\tb", 80, "a       b", 9 },
    { "12345678\tb", 80, "12345678        b", 17 },
    { "\tx", 4, "…", 1 },
    { "测量x", 4, "测…", 3 }, /* half a wide character does not fit */
    { "测量", 4, "测量", 4 },
    { "测量", 3, "测…", 3 },
    { "abe\xCC\x81", 3, "abe\xCC\x81", 3 }, /* an accent takes no column of its own */
    { "abe\xCC\x81z", 3, "ab…", 3 },
    { "ab\xE2\x9D\xA4\xEF\xB8\x8F", 4, "ab\xE2\x9D\xA4\xEF\xB8\x8F", 4 }, /* a picture takes two */
    { "ab\xE2\x9D\xA4\xEF\xB8\x8F", 3, "ab…", 3 },
    { "\t\xEF\xB8\x8F", 9, "        \xEF\xB8\x8F", 9 },
    { "שלום", 3, "של…", 3 },
    { "हिन्दी", 5, "हिन्दी", 5 },
    { "a\033[2J", 4, "a…", 2 }, /* an escape is shown whole or not at all */
    { "\xFF\xFF\xFF", 2, "\xEF\xBF\xBD…", 2 },
};

static const struct row PATHS[] = {
    { "/srv/app/prog.py", 16, "/srv/app/prog.py", 16 },
    { "/srv/app/prog.py", 15, "…/app/prog.py", 13 },
    { "/srv/app/prog.py", 12, "…/prog.py", 9 },
    { "/srv/app/prog.py", 9, "…/prog.py", 9 },
    { "/srv/app/prog.py", 8, "prog.py", 7 },
    { "/srv/app/prog.py", 4, "pro…", 4 },
    { "/srv/测量/x.py", 9, "…/x.py", 6 },
    { "/program.py", 8, "program…", 8 },
    { "<string>", 5, "<str…", 5 },
    { "", 5, "", 0 },
    { "/a/b", 0, "", 0 },
};

typedef size_t fit(const char *text, size_t columns, char *into, size_t size);

static void assert_rows(fit *function, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char shown[256];
        assert_int_equal(function(rows[i].text, rows[i].limit, shown, sizeof shown),
                         rows[i].columns);
        assert_string_equal(shown, rows[i].shown);
    }
}

static void test_texts(void **state)
{
    (void)state;
    assert_rows(screen_text_fit, TEXTS, sizeof TEXTS / sizeof *TEXTS);
}

static void test_paths(void **state)
{
    (void)state;
    assert_rows(screen_path_fit, PATHS, sizeof PATHS / sizeof *PATHS);
}

/* Whatever the bytes, the columns and the buffer: what comes out fits into both. */
static void test_any_bytes(void **state)
{
    (void)state;
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 20000; round++) {
        char text[32] = "";
        for (size_t i = 0; i < 28; i++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            text[i] = "/\t\033\xCC\x81\xE6\xB5\x8B\xFFx\xEF\xB8\x8F"[(random >> 24 & 1023) % 12];
        }
        size_t limit = random >> 32 & 31, size = 8 + (random >> 40 & 63);
        char *shown = malloc(size), whole[256];
        assert_non_null(shown);
        fit *const both[] = { screen_text_fit, screen_path_fit };
        for (size_t i = 0; i < 2; i++) {
            size_t columns = both[i](text, limit, shown, size);
            assert_true(columns <= limit);
            assert_true(strlen(shown) < size);
            assert_int_equal(screen_text(shown, whole, sizeof whole), columns);
            assert_string_equal(whole, shown);
        }
        free(shown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
