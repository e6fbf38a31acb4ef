/* Looks that are not as usual: at threads that are held, and those that came to nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/replay.h"

#define MS 1000000u
#define MAIN "/srv/shop/main.py"

static struct profile *made_profile(void)
{
    static struct profile_settings settings;
    struct profile *profile;
    settings = replay_settings("/srv/shop");
    settings.sources = NULL;
    settings.cpu_percent_threshold = 0;
    assert_int_equal(profile_new(&settings, &profile), 0);
    return profile;
}

/* A thread that is stopped would not run if there were a core for it. */
static void test_stopped(void **state)
{
    (void)state;
    AUTO_PROFILE struct profile *profile = made_profile();
    AUTO_REPORT struct report *report = NULL;
    struct frame_event frame = {
        .kind = FRAME_PYTHON, .name = "f", .file = MAIN, .line = 5, .first_line = 1
    };
    struct sample_event sample = { .tid = 9,
                                   .state = THREAD_STOPPED,
                                   .wait_ns = MS,
                                   .samples = 1,
                                   .frames = &frame,
                                   .frame_count = 1 };
    struct tick_event tick = { .pid = 9, .wall_ns = MS, .samples = &sample, .sample_count = 1 };
    assert_int_equal(profile_add_tick(profile, &tick), 0);
    assert_int_equal(profile_report(profile, &report), 0);
    for (int kind = THREAD_WAIT_GIL; kind <= THREAD_WAIT_OTHER; kind++)
        assert_float_equal(line_find(report, MAIN, 5)->wait_s.seconds[kind - THREAD_WAIT_GIL],
                           kind == THREAD_WAIT_OTHER ? 0.001 : 0, 1e-9);
}

/* Some dropped looks are usual; more have to be known of. */
static void test_dropped(void **state)
{
    (void)state;
    AUTO_PROFILE struct profile *profile = made_profile();
    for (unsigned more = 0; more < 2; more++) {
        AUTO_REPORT struct report *report = NULL;
        struct sampling_event sampling = { .samples = 95, .dropped = 5 + more };
        assert_int_equal(profile_set_sampling(profile, &sampling), 0);
        assert_int_equal(profile_report(profile, &report), 0);
        assert_int_equal(report->notes.count, more);
        if (more)
            assert_non_null(strstr(report->notes.items[0], "6 % of the looks"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
