/* The table of a profile with memory: exact text where it is narrow and where it is wide, and it
 * fits any width. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/golden.h"
#include "tests/unit/replay.h"
#include "tests/unit/table_text.h"

static char *memory_table(const struct report *report, size_t width)
{
    const struct table_settings settings = { .width = width,
                                             .cpu_percent_threshold = 1,
                                             .malloc_threshold = 100 };
    return table_text(report, &settings);
}

static void test_golden(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report = replay_memory_report();
    static const size_t widths[] = { 80, 132, 200 };
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        AUTO_FREE char *text = memory_table(report, widths[i]);
        char name[64];
        snprintf(name, sizeof name, "table/memory_%zu.txt", widths[i]);
        assert_fit(text, widths[i]);
        assert_golden(name, text);
    }
}

/* From 80 columns on the line's peak and its share stand beside the time. */
static void test_any_width(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report = replay_memory_report();
    for (size_t width = 20; width <= 500; width += width < 160 ? 1 : 17) {
        AUTO_FREE char *text = memory_table(report, width);
        assert_fit(text, width);
        bool shows = strstr(text, " peak ") && strstr(text, " share ");
        assert_true(shows || width < 80);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_any_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
