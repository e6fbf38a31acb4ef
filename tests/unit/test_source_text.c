/* A source file's bytes as Python reads them: encodings, line ends, what is invalid. */
#include "output/model/source_text.h"

#include "sampler/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#define BAD "\xef\xbf\xbd"

static void assert_read(const char *bytes, size_t size, int result, const char *want)
{
    AUTO_FREE char *text = NULL, *exact = malloc(size ? size : 1);
    size_t text_size = 1;
    assert_non_null(exact);
    memcpy(exact, bytes, size); /* so that a sanitizer sees a read past its end */
    assert_int_equal(source_text_new(exact, size, &text, &text_size), result);
    assert_string_equal(text, want);
    assert_int_equal(text_size, strlen(want));
}

#define ASSERT_TEXT(bytes, want) assert_read(bytes, sizeof(bytes) - 1, 0, want)

static void test_utf8(void **state)
{
    (void)state;
    ASSERT_TEXT("", "");
    ASSERT_TEXT("x = 'é€😀'\n", "x = 'é€😀'\n");
    ASSERT_TEXT("\xef\xbb\xbfx = 'é'\n", "x = 'é'\n");
    ASSERT_TEXT("\xef\xbb\xbf# coding: latin-1\nx = 'é'\n", "# coding: latin-1\nx = 'é'\n");
    ASSERT_TEXT("\xef\xbb", BAD BAD);
    ASSERT_TEXT("a\xff\xc3", "a" BAD BAD);
    ASSERT_TEXT("\xed\xa0\x80", BAD BAD BAD); /* a surrogate */
    ASSERT_TEXT("a\0b", "a" BAD "b");
}

static void test_line_ends(void **state)
{
    (void)state;
    ASSERT_TEXT("a\r\nb\rc\n\rd\r\r\n", "a\nb\nc\n\nd\n\n");
    ASSERT_TEXT("\r", "\n");
    ASSERT_TEXT("a\fb\vc\x1c"
                "d\xe2\x80\xa8"
                "e",
                "a\fb\vc\x1c"
                "d\xe2\x80\xa8"
                "e");
}

static void assert_decoded(const char *encoding, const char *bytes, int result, const char *want)
{
    char source[256], text[256];
    int size = snprintf(source, sizeof source, "# -*- coding: %s -*-\r\n%s\n", encoding, bytes);
    snprintf(text, sizeof text, "# -*- coding: %s -*-\n%s\n", encoding, want);
    assert_read(source, (size_t)size, result, text);
}

/* Python's names of encodings, whatever iconv calls them. */
static void test_encodings(void **state)
{
    static const struct {
        const char *name, *bytes, *want;
    } ROWS[] = {
        { "latin-1", "\xe9\x80", "\u00e9\xc2\x80" },
        { "latin_1", "\xe9", "é" },
        { "Latin1", "\xe9", "é" },
        { "iso-8859-1", "\xe9", "é" },
        { "iso_8859_15", "\xa4", "€" },
        { "iso8859-15", "\xa4", "€" },
        { "cp1252", "\x80\x81", "€" BAD },
        { "windows-1252", "\x80", "€" },
        { "ascii", "a\xe9z", "a" BAD "z" },
        { "us-ascii", "a\xe9", "a" BAD },
        { "utf-8", "é\xff", "é" BAD },
        { "utf8", "é", "é" },
        { "UTF_8", "é", "é" },
        { "koi8-r", "\xc1", "а" },
        { "koi8_r", "\xc1", "а" },
        { "shift_jis", "\x82\xa0", "あ" },
        { "euc-jp", "\xa4\xa2", "あ" },
        { "euc_jp", "\xa4\xa2\xa4", "あ" BAD },
        { "gbk", "\xc4\xe3", "你" },
        { "big5", "\xa7\x41", "你" },
        { "cp949", "\xb0\xa1", "가" },
        { "mac-roman", "\x8e", "é" },
        { "mac_roman", "\x8e", "é" },
        { "MacRoman", "\x8e", "é" },
        { "mac_cyrillic", "\x80", "А" },
        { "maccyrillic", "\x80", "А" },
        { "mac_latin2", "\x8c", "Ć" },
        { "936", "\xc4\xe3", "你" },
        { "1251", "\xe0", "а" },
        { "chinese", "\xc4\xe3", "你" },
        { "gb2312-80", "\xc4\xe3", "你" },
        { "korean", "\xb0\xa1", "가" },
        { "ks_c-5601-1987", "\xb0\xa1", "가" },
        { "ms949", "\xb0\xa1", "가" },
        { "u8", "é\xff", "é" BAD },
        { "ms-kanji", "\x87\x40", "①" },
        { "shift_jis_2004", "\x82\xa0", "あ" },
        { "euc_jis_2004", "\xa4\xa2", "あ" },
        { "kz1048", "\xfe", "ю" },
        { "ptcp154", "\xfe", "ю" },
        { "646", "a\xe9", "a" BAD },
        { "latin-1-unix", "\xe9", "é" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++)
        assert_decoded(ROWS[i].name, ROWS[i].bytes, 0, ROWS[i].want);
}

/* As Latin-1, and the caller knows. */
static void test_unknown_encodings(void **state)
{
    static const char *const NAMES[] = { "no-such-encoding", "hz", "cp720", "mac_turkish", "7" };
    (void)state;
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        assert_decoded(NAMES[i], "\xe9", 1, "é");
}

/* Where a coding line counts, and where it is like any other (PEP 263). */
static void test_coding_lines(void **state)
{
    (void)state;
    ASSERT_TEXT("#!/usr/bin/python\n# vim: set fileencoding=latin-1 :\n\xe9",
                "#!/usr/bin/python\n# vim: set fileencoding=latin-1 :\né");
    ASSERT_TEXT("\n \t\f# coding=\tlatin-1\n\xe9", "\n \t\f# coding=\tlatin-1\né");
    ASSERT_TEXT("# coding or encoding: latin-1\n\xe9", "# coding or encoding: latin-1\né");
    ASSERT_TEXT("# coding: latin-1", "# coding: latin-1");
    ASSERT_TEXT("x = 1 # coding: latin-1\n\xe9", "x = 1 # coding: latin-1\n" BAD);
    ASSERT_TEXT("x = 1\n# coding: latin-1\n\xe9", "x = 1\n# coding: latin-1\n" BAD);
    ASSERT_TEXT("\n\n# coding: latin-1\n\xe9", "\n\n# coding: latin-1\n" BAD);
    ASSERT_TEXT("# coding latin-1\n\xe9", "# coding latin-1\n" BAD);
    ASSERT_TEXT("# coding:\n\xe9", "# coding:\n" BAD);
    ASSERT_TEXT("# coding", "# coding");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utf8),         cmocka_unit_test(test_line_ends),
        cmocka_unit_test(test_encodings),    cmocka_unit_test(test_unknown_encodings),
        cmocka_unit_test(test_coding_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
