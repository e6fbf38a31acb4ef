/* UTF-8 is told from what is none as Unicode's table 3-7 does, and a repaired text is valid. */
#include "sampler/base/utf8.h"

#include "sampler/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

static void encode(uint32_t value, char into[5])
{
    memset(into, 0, 5);
    if (value < 0x80) {
        into[0] = (char)value;
        return;
    }
    unsigned more = value < 0x800 ? 1 : value < 0x10000 ? 2 : 3;
    into[0] = (char)(0xFF00u >> (more + 1) | value >> 6 * more);
    for (unsigned i = 1; i <= more; i++)
        into[i] = (char)(0x80 | (value >> 6 * (more - i) & 0x3F));
}

static void test_every_character(void **state)
{
    (void)state;
    for (uint32_t value = 1; value < 0x120000; value++) {
        char text[5];
        uint32_t got = 0;
        encode(value, text);
        bool exists = value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF);
        assert_int_equal(utf8_is_valid(text), exists);
        assert_int_equal(utf8_decode(text, &got), exists ? strlen(text) : 0);
        assert_int_equal(got, exists ? value : 0);
    }
}

/* How many sequences of three bytes are one character: all from U+0800 on but the surrogates. */
static void test_every_three_bytes(void **state)
{
    (void)state;
    unsigned valid = 0;
    for (uint32_t bytes = 0; bytes < 1 << 24; bytes++) {
        const char text[] = { (char)(bytes >> 16), (char)(bytes >> 8), (char)bytes, '\0' };
        uint32_t character;
        valid += utf8_decode(text, &character) == 3;
    }
    assert_int_equal(valid, 0x10000 - 0x800 - 0x800);
}

static void test_repaired(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        { "", "" },
        { "fine größe 🐍", "fine größe 🐍" },
        { "a\xFFz", "a" UTF8_REPLACEMENT "z" },
        { "cut \xF0\x9F\x90", "cut " UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT },
        { "\xE9t\xE9", UTF8_REPLACEMENT "t" UTF8_REPLACEMENT },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_FREE char *repaired = utf8_repair(rows[i][0]);
        assert_string_equal(repaired, rows[i][1]);
        assert_true(utf8_is_valid(repaired));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_character),
        cmocka_unit_test(test_every_three_bytes),
        cmocka_unit_test(test_repaired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
