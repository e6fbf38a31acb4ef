/* Source files in any encoding become UTF-8 with plain line ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/model/source_text.h"
#include "sampler/base/cleanup.h"

#include <string.h>

/* From memory of exactly that size, so that a sanitizer sees a read beyond it. */
static void check(const char *bytes, size_t size, const char *expected)
{
    AUTO_FREE char *exact = malloc(size + !size);
    AUTO_FREE char *text = NULL;
    size_t length;
    memcpy(exact, bytes, size);
    assert_int_equal(source_text_new(exact, size, &text, &length), 0);
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(expected));
}

#define CHECK(bytes, expected) check(bytes, sizeof(bytes) - 1, expected)

static void test_plain(void **state)
{
    (void)state;
    CHECK("", "");
    CHECK("x = 1\n", "x = 1\n");
    CHECK("a\r\nb\rc", "a\nb\nc");
    CHECK("a\r", "a\n");
    CHECK("\xef\xbb\xbfx", "x");
    CHECK("na\xc3\xafve", "na\xc3\xafve");
}

static void test_broken(void **state)
{
    (void)state;
    CHECK("a\0b", "a\xef\xbf\xbd"
                  "b");
    CHECK("\xe9", "\xef\xbf\xbd");
    CHECK("x\xc3", "x\xef\xbf\xbd");
    CHECK("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    CHECK("\xf0\x9f\x90", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

static void test_encodings(void **state)
{
    (void)state;
    CHECK("# coding: latin-1\n\xe9", "# coding: latin-1\n\xc3\xa9");
    CHECK("#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n\x80",
          "#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n\xe2\x82\xac");
    CHECK("# -*- coding: shift_jis -*-\n\x82\xa0", "# -*- coding: shift_jis -*-\n\xe3\x81\x82");
    CHECK("# coding=UTF_8\n\xc3\xa9", "# coding=UTF_8\n\xc3\xa9");
    CHECK("# coding: no-such-thing\n\xe9", "# coding: no-such-thing\n\xc3\xa9");
    CHECK("# coding: ascii\n\xe9x", "# coding: ascii\n?x");
    /* no comment, or too late */
    CHECK("coding: latin-1\n\xe9", "coding: latin-1\n\xef\xbf\xbd");
    CHECK("x = 1 # coding: latin-1\n\xe9", "x = 1 # coding: latin-1\n\xef\xbf\xbd");
    CHECK("\n\n# coding: latin-1\n\xe9", "\n\n# coding: latin-1\n\xef\xbf\xbd");
    CHECK("# coding:", "# coding:");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_encodings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
