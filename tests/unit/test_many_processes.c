/* A profile of more processes than are kept: what they did is there still. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/replay.h"

#define MS 1000000u
#define MAIN "/srv/shop/main.py"

enum { PROCESSES = 10000, PIDS = 700, STAYS = 5, KEPT = 1024 };

static bool has_note(const struct report *report, const char *text)
{
    for (size_t i = 0; i < report->notes.count; i++)
        if (strcmp(report->notes.items[i], text) == 0)
            return true;
    return false;
}

/* A millisecond of work, the i-th of all. */
static void work_add(struct profile *profile, pid_t pid, int i)
{
    const struct frame_event frame = {
        .kind = FRAME_PYTHON, .name = "work", .file = MAIN, .line = 4, .first_line = 1
    };
    const struct sample_event sample = { .tid = pid,
                                         .is_main = true,
                                         .python_ns = MS,
                                         .samples = 1,
                                         .frames = &frame,
                                         .frame_count = 1 };
    const struct tick_event tick = { .time_ns = (uint64_t)(i + 1) * MS,
                                     .pid = pid,
                                     .wall_ns = MS,
                                     .samples = &sample,
                                     .sample_count = 1 };
    assert_int_equal(profile_add_tick(profile, &tick), 0);
}

/* The first and one other stay. */
static void process_live(struct profile *profile, int i)
{
    const char *argv[] = { "python3", NULL };
    pid_t pid = i == STAYS ? 5 : i ? 1000 + i % PIDS : 9;
    struct process_event process = { .pid = pid, .argv = argv, .cpu_s = 1e-3, .start_s = 1e-3 * i };
    assert_int_equal(profile_add_process(profile, &process), 0);
    work_add(profile, pid, i);
    process.end_s = pid > 9 ? 1e-3 * (i + 1) : 0;
    assert_int_equal(profile_add_process(profile, &process), 0);
    assert_int_equal(profile_knows(profile, pid), pid <= 9);
}

static void check_processes(const struct report *report)
{
    size_t count = report->processes.count;
    assert_true(count > KEPT / 2 && count <= KEPT);
    assert_int_equal(report->processes.items[0].pid, 9);
    assert_int_equal(report->processes.items[1].pid, 5);
    assert_string_equal(report->processes.items[count - 1].argv.items[0], "python3");
    assert_float_equal(report->processes.items[count - 1].end_s, 1e-3 * PROCESSES, 1e-9);
    assert_float_equal(report->threads.items[0].cpu_python_s, 2e-3, 1e-9);
}

/* One after the other, some with the numbers of former ones. */
static void test_many_processes(void **state)
{
    (void)state;
    const struct profile_settings settings = replay_settings("/srv/shop");
    AUTO_PROFILE struct profile *profile = NULL;
    AUTO_REPORT struct report *report = NULL;
    char note[160];
    assert_int_equal(profile_new(&settings, &profile), 0);
    for (int i = 0; i < PROCESSES; i++)
        process_live(profile, i);
    work_add(profile, 9, PROCESSES);
    assert_int_equal(profile_report(profile, &report), 0);
    check_processes(report);
    assert_float_equal(line_find(report, MAIN, 4)->cpu_python_s, 1e-3 * (PROCESSES + 1), 1e-6);
    assert_int_equal(line_find(report, MAIN, 4)->n_processes, PROCESSES);
    size_t gone = PROCESSES - report->processes.count;
    snprintf(note, sizeof note,
             "left out: %zu of the processes, which had ended and used %.3f s of CPU time", gone,
             1e-3 * (double)gone);
    assert_true(has_note(report, note));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
