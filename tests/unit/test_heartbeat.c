/* The heartbeat's line: what it says, that it never wraps, and what it sends to the terminal. */
#include "output/cli/heartbeat.h"

#include "output/cli/screen_text.h"
#include "sampler/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

static const struct heartbeat BEAT = {
    .elapsed_s = 12.9,
    .rate_hz = 99.6,
    .profiler_cpu_s = 0.1,
    .samples = 1234,
    .dropped = 3,
    .rss_bytes = 128974848,
    .hottest_file = "/srv/app/größe.py",
    .hottest_line = 12,
    .hottest_percent = 34.5,
};

static void assert_says(const struct heartbeat *beat, size_t columns, const char *want)
{
    char text[512];
    size_t used = heartbeat_text(beat, columns, text, sizeof text);
    assert_string_equal(text, want);
    assert_int_equal(used, screen_text(text, (char[512]){ "" }, 512));
}

static void test_all(void **state)
{
    (void)state;
    assert_says(&BEAT, 200,
                "0:12  1234 samples  100 Hz  3 dropped  own CPU 0.8%  RSS 123M  größe.py:12 34.5%");
}

static void test_beginning(void **state)
{
    (void)state;
    const struct heartbeat beat = { .rate_hz = 100 };
    assert_says(&beat, 80, "0:00  0 samples  100 Hz  0 dropped  own CPU 0.0%");
}

/* Between `off` and `on`. */
static void test_resting(void **state)
{
    (void)state;
    struct heartbeat beat = BEAT;
    beat.is_off = true;
    assert_says(&beat, 200,
                "0:12  1234 samples  off  3 dropped  own CPU 0.8%  RSS 123M  größe.py:12 34.5%");
}

static void test_elapsed(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } rows[] = { { -1, "0:00 " },    { 59.99, "0:59 " },   { 60, "1:00 " },
                 { 3599, "59:59 " }, { 3600, "1:00:00 " }, { 360000, "100:00:00 " } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct heartbeat beat = { .elapsed_s = rows[i].seconds };
        char text[512];
        heartbeat_text(&beat, 100, text, sizeof text);
        assert_memory_equal(text, rows[i].text, strlen(rows[i].text));
    }
}

static void test_cut(void **state)
{
    (void)state;
    assert_says(&BEAT, 20, "0:12  1234 samples …");
    for (size_t columns = 0; columns < 120; columns++) {
        char text[512];
        assert_true(heartbeat_text(&BEAT, columns, text, sizeof text) <= columns);
    }
}

/* A file may be named to spoil a terminal. */
static void test_foreign_name(void **state)
{
    (void)state;
    AUTO_FREE char *name = calloc(1, 100001);
    assert_non_null(name);
    memset(name, '\033', 100000);
    struct heartbeat beat = BEAT;
    beat.hottest_file = name;
    char text[512];
    assert_int_equal(heartbeat_text(&beat, 100, text, sizeof text), 100);
    assert_null(strchr(text, '\033'));
}

/* The last column stays free, and what was there before goes. */
static void test_drawn(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    heartbeat_draw(out, &BEAT, 21);
    heartbeat_draw(out, &BEAT, 0);
    heartbeat_erase(out);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, "\r0:12  1234 samples …\033[K\r\033[K\r\033[K");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),     cmocka_unit_test(test_beginning),
        cmocka_unit_test(test_elapsed), cmocka_unit_test(test_resting),
        cmocka_unit_test(test_cut),     cmocka_unit_test(test_foreign_name),
        cmocka_unit_test(test_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
