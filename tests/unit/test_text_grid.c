/* Small tables in windows of any width: columns go whole, the least important first, and what is
 * left of a text tells it from others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "output/cli/text_grid.h"
#include "tests/unit/table_text.h"

static const struct grid_column grid_columns[] = {
    { "id", STYLE_COUNT, true, 0, 0 },      { "most", STYLE_COUNT, true, 2, 0 },
    { "least", STYLE_COUNT, true, 9, 0 },   { "none", STYLE_COUNT, true, 0, 0 },
    { "waits", STYLE_COUNT, false, 0, 12 }, { "name", STYLE_COUNT, false, 0, 0 },
};

static const char *const rows[][6] = {
    { "4711", "1.00s", "5.00s", "", "lock 1.50s, sleep 20.0ms", "worker number 1" },
    { "12", "20.0ms", "", "", "io 3.00s", "w" },
};

static char *grid_text(size_t width)
{
    CLEANUP(grid_done) struct grid grid = { .columns = grid_columns, .column_count = 6 };
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    for (size_t i = 0; i < 2; i++) {
        char(*row)[GRID_TEXT] = grid_row(&grid);
        assert_non_null(row);
        for (size_t n = 0; n < 6; n++)
            snprintf(row[n], GRID_TEXT, "%s", rows[i][n]);
    }
    grid_write(out, &grid, width, false);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void assert_grid(size_t width, const char *want)
{
    AUTO_FREE char *text = grid_text(width);
    assert_string_equal(text, want);
}

static void test_widths(void **state)
{
    (void)state;
    assert_grid(80, "    id    most  least  waits                     name\n"
                    "  4711   1.00s  5.00s  lock 1.50s, sleep 20.0ms  worker number 1\n"
                    "    12  20.0ms         io 3.00s                  w\n");
    assert_grid(60, "    id    most  least  waits                     name\n"
                    "  4711   1.00s  5.00s  lock 1.50s, sleep 20.0ms  worker num…\n"
                    "    12  20.0ms         io 3.00s                  w\n");
    assert_grid(50, "    id    most  least  waits            name\n"
                    "  4711   1.00s  5.00s  lock 1.50s, sl…  worker nu…\n"
                    "    12  20.0ms         io 3.00s         w\n");
    assert_grid(46, "    id    most  waits               name\n"
                    "  4711   1.00s  lock 1.50s, sleep…  worker nu…\n"
                    "    12  20.0ms  io 3.00s            w\n");
    assert_grid(33, "    id  waits          name\n"
                    "  4711  lock 1.50s, …  worker nu…\n"
                    "    12  io 3.00s       w\n");
}

/* It always fits, also where no text has its least. */
static void test_any_width(void **state)
{
    (void)state;
    for (size_t width = 20; width < 200; width++) {
        AUTO_FREE char *text = grid_text(width);
        assert_fit(text, width);
        assert_true(strstr(text, "name") || width < 32);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widths),
        cmocka_unit_test(test_any_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
