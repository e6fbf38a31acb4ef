/* What a profile makes of what its sources say of themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/replay.h"

#define MS 1000000u
#define MAIN "/srv/shop/main.py"

struct text_reader {
    struct source_reader reader;
    const char *text;
};

static int text_read(struct source_reader *self, const char *file, struct source *ret)
{
    const char *text = ((struct text_reader *)self)->text;
    (void)file;
    *ret = (struct source){ .bytes = strdup(text), .size = strlen(text), .modified_s = 1 };
    return ret->bytes ? 0 : -ENOMEM;
}

/* Of a program that was met on that line of that text. */
static struct report *report_of(const char *text, int line)
{
    struct text_reader sources = { { text_read }, text };
    struct profile_settings settings = replay_settings("/srv/shop");
    settings.sources = &sources.reader;
    struct report *report = NULL;
    struct profile *made;
    assert_int_equal(profile_new(&settings, &made), 0);
    AUTO_PROFILE struct profile *profile = made;
    struct frame_event frame = {
        .kind = FRAME_PYTHON, .name = "f", .file = MAIN, .line = line, .first_line = line
    };
    struct sample_event sample = { .tid = 9,
                                   .state = THREAD_RUNNING,
                                   .python_ns = MS,
                                   .samples = 1,
                                   .frames = &frame,
                                   .frame_count = 1 };
    struct tick_event tick = { .pid = 9, .wall_ns = MS, .samples = &sample, .sample_count = 1 };
    assert_int_equal(profile_add_tick(profile, &tick), 0);
    assert_int_equal(profile_report(profile, &report), 0);
    return report;
}

/* Who sees wrong letters has to know why. */
static void test_unknown_encoding(void **state)
{
    (void)state;
    AUTO_REPORT struct report *known = report_of("# coding: mac-roman\nx = '\x8e'\n", 2);
    assert_int_equal(known->notes.count, 0);
    assert_string_equal(line_find(known, MAIN, 2)->line, "x = 'é'\n");
    AUTO_REPORT struct report *unknown = report_of("# coding: no-such\nx = '\xe9'\n", 2);
    assert_int_equal(unknown->notes.count, 1);
    assert_string_equal(unknown->notes.items[0], "the encoding that " MAIN " names is not known "
                                                 "here: its text is shown as Latin-1");
    assert_string_equal(line_find(unknown, MAIN, 2)->line, "x = 'é'\n");
}

/* A decorator of its own keeps nothing out of the report. */
static void test_own_profile(void **state)
{
    (void)state;
    AUTO_REPORT struct report *ours = report_of("@profile\ndef f():\n    pass\nf()\n", 4);
    assert_int_equal(ours->files.count, 0);
    assert_true(ours->hidden.by_decorator);
    AUTO_REPORT struct report *own =
        report_of("from tools import profile\n@profile\ndef f():\n    pass\nf()\n", 5);
    assert_non_null(line_find(own, MAIN, 5));
    assert_int_equal(own->notes.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown_encoding),
        cmocka_unit_test(test_own_profile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
