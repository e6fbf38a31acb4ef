/* A dump for people is its golden text, plain and coloured, and nothing of the target's gets
 * through raw. */
#include "output/cli/dump_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/golden.h"
#include "tests/unit/sample_dump.h"

static char *dump_text(bool coloured)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    dump_text_write(out, coloured, &sample_dump);
    fclose(out);
    return text;
}

static void test_plain(void **state)
{
    (void)state;
    AUTO_FREE char *text = dump_text(false);
    assert_golden("dump/sample.txt", text);
}

static void test_coloured(void **state)
{
    (void)state;
    AUTO_FREE char *text = dump_text(true);
    assert_golden("dump/coloured.txt", text);
}

static void test_no_control_bytes(void **state)
{
    (void)state;
    AUTO_FREE char *text = dump_text(false);
    for (const char *at = text; *at; at++)
        assert_true((unsigned char)*at >= ' ' || *at == '\n');
}

/* Colours add escape sequences and change nothing else. */
static void test_colours_add_only(void **state)
{
    (void)state;
    AUTO_FREE char *plain = dump_text(false);
    AUTO_FREE char *coloured = dump_text(true);
    char *to = coloured;
    for (const char *from = coloured; *from; from++) {
        if (*from == '\033')
            from = strchr(from, 'm');
        else
            *to++ = *from;
    }
    *to = '\0';
    assert_string_equal(coloured, plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_coloured),
        cmocka_unit_test(test_no_control_bytes),
        cmocka_unit_test(test_colours_add_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
