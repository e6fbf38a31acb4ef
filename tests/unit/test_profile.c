/* Where time goes: to which line, to whom of its callers, and that nothing is lost or counted
 * twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/replay.h"

#include <math.h>

#define MS 1000000u
#define MAIN "/srv/shop/main.py"
#define TOOLS "/srv/shop/tools.py"

static struct report *shop(void)
{
    struct profile_settings settings = replay_settings("/srv/shop");
    return replay_report("streams/shop.stream", &settings);
}

static double own_seconds(const struct line_stats *stats)
{
    return stats->cpu_python_s + stats->cpu_native_s + stats->cpu_kernel_s + stats->idle_s;
}

/* What a thread was doing below a shown line counts for that line, the rest for its callers. */
static void test_lines(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report = shop();
    const struct line_stats *line = line_find(report, MAIN, 8);
    assert_float_equal(line->cpu_native_s, 0.018, 1e-7);
    assert_float_equal(line->cpu_kernel_s, 0.002, 1e-7);
    assert_int_equal(line->native_top.count, 2);
    assert_string_equal(line->native_top.items[1].symbol, "sha256_block_data_order");
    assert_float_equal(line->native_top.items[1].seconds, 0.010, 1e-7);
    assert_int_equal(line->n_processes, 2);
    /* what the library's loads() did, is the caller's */
    assert_float_equal(line_find(report, TOOLS, 5)->cpu_python_s, 0.010, 1e-7);
    assert_float_equal(line_find(report, TOOLS, 5)->wait_s.seconds[0], 0.010, 1e-7);
}

static void test_cumulative(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report = shop();
    /* walk() calls itself: once a sample, 10 + 10 + 10 ms */
    assert_float_equal(line_find(report, MAIN, 7)->cumulative_s, 0.030, 1e-7);
    const struct line_stats *top = line_find(report, MAIN, 24);
    assert_float_equal(own_seconds(top), 0, 0);
    assert_float_equal(top->cumulative_s, 0.236, 1e-7);
    const struct line_stats *walk = &file_find(report, MAIN)->functions.items[0];
    assert_string_equal(walk->line, "walk");
    assert_int_equal(walk->lineno, 5);
    assert_float_equal(walk->cumulative_s, 0.144, 1e-7);
    assert_float_equal(own_seconds(walk), 0.135, 1e-7);
}

/* Idle time is the main thread's, but while it joins that of the lines on which the others wait. */
static void test_idle(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report = shop();
    assert_float_equal(line_find(report, MAIN, 21)->idle_s, 0.090, 1e-7);
    assert_float_equal(line_find(report, MAIN, 20)->idle_s, 0, 0);
    assert_float_equal(line_find(report, MAIN, 20)->wait_s.seconds[2], 0.040, 1e-7);
    assert_float_equal(line_find(report, TOOLS, 5)->idle_s, 0.0045, 1e-7);
    assert_float_equal(line_find(report, TOOLS, 6)->idle_s, 0.0045, 1e-7);
}

static void test_sums(void **state)
{
    (void)state;
    struct profile_settings settings = replay_settings("/srv/shop");
    settings.cpu_percent_threshold = 0;
    AUTO_REPORT struct report *report = replay_report("streams/shop.stream", &settings);
    double shown = 0, percent = 0, base = report_base_s(report);
    for (size_t i = 0; i < report->files.count; i++) {
        const struct report_file *file = &report->files.items[i];
        double of_file = 0;
        for (size_t n = 0; n < file->lines.count; n++) {
            shown += own_seconds(&file->lines.items[n]);
            of_file += line_percent(&file->lines.items[n]);
        }
        assert_float_equal(of_file, file->percent_cpu_time, 1e-7);
        percent += of_file;
    }
    assert_float_equal(base, 0.271, 1e-7);
    assert_float_equal(base - shown, 0.006, 1e-7); /* the library's own thread */
    assert_float_equal(percent, 100 * shown / base, 1e-7);
    assert_int_equal(report->hidden.count, 1);
    assert_float_equal(report->hidden.items[0].seconds, 0.006, 1e-7);
    assert_non_null(file_find(report, "/srv/shop/rare.py"));
}

static void test_virtual_time(void **state)
{
    (void)state;
    struct profile_settings settings = replay_settings("/srv/shop");
    settings.virtual_time = true;
    AUTO_REPORT struct report *report = replay_report("streams/shop.stream", &settings);
    assert_float_equal(report_base_s(report), 0.082, 1e-7);
    assert_float_equal(report->totals.wait_s.seconds[3], 0, 0);
}

/* --no-stacks: numbers as ever, and no stack that they could be told from. */
static void test_no_stacks(void **state)
{
    (void)state;
    struct profile_settings settings = replay_settings("/srv/shop");
    settings.no_stacks = true;
    AUTO_REPORT struct report *usual = shop();
    AUTO_REPORT struct report *report = replay_report("streams/shop.stream", &settings);
    assert_true(usual->combined_stacks.count && usual->stacks.count && usual->timeline.count);
    assert_false(report->combined_stacks.count || report->stacks.count || report->timeline.count);
    assert_false(report->stack_times.count);
    assert_float_equal(line_find(report, MAIN, 7)->cumulative_s,
                       line_find(usual, MAIN, 7)->cumulative_s, 0);
}

static void test_moments(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report = shop();
    const struct line_stats *join = line_find(report, MAIN, 20);
    assert_int_equal(join->cpu_samples_list.count, 4);
    assert_float_equal(join->cpu_samples_list.items[0], 1000.57, 1e-7);
    assert_int_equal(line_find(report, TOOLS, 6)->cpu_samples_list.count, 0); /* no main thread */
}

/* With @profile only such functions have lines; what they call counts for them. */
static void test_profile_decorator(void **state)
{
    (void)state;
    struct profile_settings settings = replay_settings("/srv/marked");
    AUTO_REPORT struct report *report = replay_report("streams/marked.stream", &settings);
    assert_float_equal(line_find(report, "/srv/marked/main.py", 6)->cpu_python_s, 0.010, 1e-7);
    assert_float_equal(line_find(report, "/srv/marked/main.py", 7)->cpu_python_s, 0.020, 1e-7);
    for (size_t line = 1; line <= 13; line++)
        if (line < 4 || line > 7)
            assert_float_equal(line_find(report, "/srv/marked/main.py", line)->cumulative_s, 0, 0);
    assert_int_equal(file_find(report, "/srv/marked/main.py")->functions.count, 1);
}

static void wait_add(struct profile *profile, pid_t tid, const struct frame_event *frame,
                     uint64_t time_ns)
{
    struct sample_event sample = { .tid = tid,
                                   .ident = (uint64_t)tid,
                                   .is_main = tid == 7,
                                   .state = THREAD_WAIT_SLEEP,
                                   .wait_ns = MS,
                                   .samples = 1,
                                   .frames = frame,
                                   .frame_count = 1 };
    struct tick_event tick = { .time_ns = time_ns,
                               .pid = 7,
                               .wall_ns = MS,
                               .idle_ns = MS,
                               .samples = &sample,
                               .sample_count = 1 };
    assert_int_equal(profile_add_tick(profile, &tick), 0);
}

/* A thread that has not moved since is not where a line is shown any more. */
static void test_late_profile_decorator(void **state)
{
    (void)state;
    struct profile_settings settings = replay_settings("/srv/marked");
    struct profile *profile;
    struct frame_event plain = { .kind = FRAME_PYTHON,
                                 .name = "rest",
                                 .file = "/srv/marked/plain.py",
                                 .line = 3,
                                 .first_line = 1 };
    struct frame_event other = plain, wanted = plain;
    other.line = 4;
    wanted.name = "wanted";
    wanted.file = "/srv/marked/main.py";
    wanted.line = 6;
    wanted.first_line = 4;
    assert_int_equal(profile_new(&settings, &profile), 0);
    wait_add(profile, 7, &plain, MS);
    wait_add(profile, 8, &other, 2 * MS);
    wait_add(profile, 8, &wanted, 3 * MS);
    wait_add(profile, 9, &wanted, 4 * MS);
    wait_add(profile, 7, &plain, 5 * MS);
    AUTO_REPORT struct report *report = NULL;
    assert_int_equal(profile_report(profile, &report), 0);
    assert_float_equal(report->totals.idle_s, 0.005, 1e-9);
    assert_float_equal(line_find(report, wanted.file, 6)->idle_s, 0.002, 1e-9);
    assert_float_equal(line_find(report, wanted.file, 6)->wait_s.seconds[4], 0.002, 1e-9);
    profile_free(profile);
}

/* ---- profiles without a stream ---- */

struct made {
    struct profile *profile;
    uint64_t now_ns;
};

static int made_new(void **state)
{
    static struct profile_settings settings;
    struct made *made = calloc(1, sizeof *made);
    settings = replay_settings("/srv/shop");
    settings.sources = NULL;
    settings.cpu_percent_threshold = 0;
    assert_int_equal(profile_new(&settings, &made->profile), 0);
    *state = made;
    return 0;
}

static int made_free(void **state)
{
    struct made *made = *state;
    profile_free(made->profile);
    free(made);
    return 0;
}

static void made_add(struct made *made, const struct frame_event *frames, size_t count)
{
    struct sample_event sample = { .tid = 9,
                                   .ident = 9,
                                   .is_main = true,
                                   .python_ns = MS,
                                   .samples = 1,
                                   .frames = frames,
                                   .frame_count = count };
    struct tick_event tick = { .time_ns = made->now_ns += MS,
                               .pid = 9,
                               .wall_ns = MS,
                               .samples = &sample,
                               .sample_count = 1 };
    assert_int_equal(profile_add_tick(made->profile, &tick), 0);
}

static struct frame_event frame_at(int line)
{
    return (struct frame_event){
        .kind = FRAME_PYTHON, .name = "f", .file = MAIN, .line = line, .first_line = 1
    };
}

/* Lists end somewhere and say so; what was seen often stays, and the sums stay whole. */
static void test_bounds(void **state)
{
    struct made *made = *state;
    AUTO_REPORT struct report *report = NULL;
    for (int round = 0; round < 40; round++) {
        struct frame_event hot = frame_at(1);
        made_add(made, &hot, 1);
        for (int line = 2; line < 500; line++) {
            struct frame_event stack[] = { frame_at(line), frame_at(round + 2) };
            made_add(made, stack, 2);
        }
    }
    for (int i = 0; i < 90000; i++) {
        struct frame_event frame = frame_at(1 + i % 2);
        made_add(made, &frame, 1);
    }
    assert_int_equal(profile_report(made->profile, &report), 0);
    assert_true(report->combined_stacks.count <= 10000 && report->combined_stacks.count > 4000);
    assert_true(report->timeline.count <= 100000);
    assert_int_equal(report->combined_stacks.items[0].frames.items[0]->line, 1);
    assert_int_equal(report->combined_stacks.items[0].hits, 45000 + 40);
    assert_int_equal(line_find(report, MAIN, 1)->cpu_samples_list.count, 500);
    assert_float_equal(report_base_s(report), 40 * 0.499 + 90, 1e-6);
    assert_true(report->notes.count >= 2);
    for (size_t i = 0; i < report->timeline.count; i++)
        assert_true(report->timeline.items[i].stack_index < (int64_t)report->combined_stacks.count);
}

static bool has_note(const struct report *report, const char *text)
{
    for (size_t i = 0; i < report->notes.count; i++)
        if (strcmp(report->notes.items[i], text) == 0)
            return true;
    return false;
}

/* One thread works all the time, 20,000 others once each: what they did stays, who they were goes.
 */
static void test_many_threads(void **state)
{
    enum { THREADS = 20000, KEPT = 2048 };
    struct made *made = *state;
    AUTO_REPORT struct report *report = NULL;
    struct frame_event frames[] = { frame_at(3), frame_at(4) };
    for (int i = 0; i < THREADS; i++) {
        struct sample_event samples[2] = {
            { .tid = 9, .ident = 9, .is_main = true, .name = "MainThread", .frames = &frames[0] },
            { .tid = 100 + i, .ident = 1, .frames = &frames[1] },
        };
        for (int n = 0; n < 2; n++) {
            samples[n].python_ns = MS;
            samples[n].samples = 1;
            samples[n].frame_count = 1;
        }
        struct tick_event tick = { .time_ns = made->now_ns += MS,
                                   .pid = 9,
                                   .wall_ns = MS,
                                   .samples = samples,
                                   .sample_count = 2 };
        assert_int_equal(profile_add_tick(made->profile, &tick), 0);
    }
    assert_int_equal(profile_report(made->profile, &report), 0);
    assert_float_equal(line_find(report, MAIN, 3)->cpu_python_s, 20, 1e-6);
    assert_float_equal(line_find(report, MAIN, 4)->cpu_python_s, 20, 1e-6);
    assert_int_equal(report->threads.count, 1000);
    assert_string_equal(report->threads.items[0].name, "MainThread");
    assert_float_equal(report->threads.items[0].cpu_python_s, 20, 1e-6);
    assert_int_equal(report->main_thread_id, 9);
    assert_true(has_note(report, "left out: 19001 of the threads"));
    assert_int_equal(report->combined_stacks.count, 2);
    double seconds = 0;
    int64_t several = 0, counted = 0;
    for (size_t i = 0; i < report->stack_times.count; i++) {
        seconds += report->stack_times.items[i].cpu_python_s;
        several +=
            report->stack_times.items[i].tid == -1 ? report->stack_times.items[i].samples : 0;
    }
    assert_float_equal(seconds, 40, 1e-6);
    assert_true(several >= THREADS - KEPT && several < THREADS - KEPT / 2 + 1);
    for (size_t i = 0; i < report->timeline.count; i++)
        counted += report->timeline.items[i].tid == 9 ? report->timeline.items[i].count : 0;
    assert_int_equal(counted, THREADS); /* the one that stayed has one run */
}

static void test_deep(void **state)
{
    struct made *made = *state;
    AUTO_REPORT struct report *report = NULL;
    size_t depth = 50000;
    struct frame_event *frames = calloc(depth, sizeof *frames);
    for (size_t i = 0; i < depth; i++)
        frames[i] = frame_at((int)(i % 7) + 1);
    made_add(made, frames, depth);
    free(frames);
    assert_int_equal(profile_report(made->profile, &report), 0);
    assert_int_equal(report->combined_stacks.items[0].frames.count, 256);
    assert_string_equal(report->combined_stacks.items[0].frames.items[128]->display_name,
                        "<more frames>");
    assert_float_equal(line_find(report, MAIN, 7)->cumulative_s, 0.001, 1e-7);
}

/* Line tables may say anything. */
static void test_odd_frames(void **state)
{
    struct made *made = *state;
    AUTO_REPORT struct report *report = NULL;
    struct frame_event odd[] = {
        { .kind = FRAME_PYTHON, .name = "g", .file = MAIN, .line = -5, .first_line = 3 },
        { .kind = FRAME_PYTHON, .name = "g", .file = MAIN },
        { .kind = FRAME_PYTHON, .name = "h", .file = MAIN, .line = INT32_MAX, .first_line = -2 },
        { .kind = FRAME_PYTHON },
        { .kind = FRAME_NATIVE },
        { .kind = FRAME_GC },
    };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        made_add(made, &odd[i], 1);
    made_add(made, NULL, 0);
    assert_int_equal(profile_report(made->profile, &report), 0);
    assert_float_equal(line_find(report, MAIN, 3)->cpu_python_s, 0.001, 1e-7);
    assert_float_equal(line_find(report, MAIN, 1)->cpu_python_s, 0.001, 1e-7);
    assert_float_equal(report_base_s(report), 0.007, 1e-7);
    assert_true(file_find(report, MAIN)->lines.count <= 20000);
}

/* A pid comes again. */
static void test_pid_reused(void **state)
{
    struct made *made = *state;
    AUTO_REPORT struct report *report = NULL;
    struct process_event process = { .pid = 9, .rank = -1, .exit_status = -1 };
    struct frame_event frame = frame_at(4);
    for (int i = 0; i < 3; i++) {
        process.end_s = 0;
        assert_int_equal(profile_add_process(made->profile, &process), 0);
        made_add(made, &frame, 1);
        process.end_s = i + 1;
        process.exit_status = i;
        assert_int_equal(profile_add_process(made->profile, &process), 0);
    }
    assert_int_equal(profile_report(made->profile, &report), 0);
    assert_int_equal(report->processes.count, 3);
    assert_int_equal(report->processes.items[1].exit_status, 1);
    assert_int_equal(report->threads.count, 3);
    assert_int_equal(line_find(report, MAIN, 4)->n_processes, 3);
}

/* With equal weights the margin is Wilson's for the number of samples. */
static void test_margin(void **state)
{
    struct made *made = *state;
    AUTO_REPORT struct report *report = NULL;
    for (int i = 0; i < 400; i++) {
        struct frame_event frame = frame_at(i % 4 ? 1 : 2);
        made_add(made, &frame, 1);
    }
    assert_int_equal(profile_report(made->profile, &report), 0);
    double z = 1.96, n = 400, share = 0.25;
    double width = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n);
    assert_float_equal(line_find(report, MAIN, 2)->error_percent, 100 * width, 1e-4);
    assert_float_equal(line_find(report, MAIN, 1)->error_percent, 100 * width, 1e-4);
    assert_float_equal(line_find(report, MAIN, 2)->n_cpu_percent_python, 25, 1e-7);
}

static void test_takes_idle(void **state)
{
    struct made *made = *state;
    struct frame_event frames[] = {
        { .kind = FRAME_NATIVE, .name = "futex", .module = "libc" },
        { .kind = FRAME_PYTHON,
          .name = "Thread.join",
          .file = "/usr/lib/python3.13/threading.py",
          .line = 1 },
        frame_at(3),
    };
    assert_false(profile_takes_idle(made->profile, 9, frames, 3));
    assert_false(profile_takes_idle(made->profile, 9, frames, 1));
    frames[1].name = "Condition.wait";
    assert_true(profile_takes_idle(made->profile, 9, frames, 3));
    assert_false(profile_takes_idle(made->profile, 9, frames, 2));
}

static void test_glance(void **state)
{
    struct made *made = *state;
    struct profile_glance glance;
    profile_look(made->profile, &glance);
    assert_null(glance.hottest_file);
    for (int i = 0; i < 10; i++) {
        struct frame_event frame = frame_at(i < 7 ? 2 : 1);
        made_add(made, &frame, 1);
    }
    profile_look(made->profile, &glance);
    assert_string_equal(glance.hottest_file, MAIN);
    assert_int_equal(glance.hottest_line, 2);
    assert_float_equal(glance.hottest_percent, 70, 1e-7);
}

static void test_notes(void **state)
{
    struct made *made = *state;
    AUTO_REPORT struct report *report = NULL;
    assert_int_equal(profile_add_note(made->profile, "one"), 0);
    assert_int_equal(profile_add_note(made->profile, "two"), 0);
    assert_int_equal(profile_add_note(made->profile, "one"), 0);
    assert_int_equal(profile_report(made->profile, &report), 0);
    assert_int_equal(report->notes.count, 2);
    assert_string_equal(report->notes.items[1], "two");
}

#define MADE(test) cmocka_unit_test_setup_teardown(test, made_new, made_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_cumulative),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_no_stacks),
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_virtual_time),
        MADE(test_bounds),
        MADE(test_many_threads),
        cmocka_unit_test(test_profile_decorator),
        cmocka_unit_test(test_late_profile_decorator),
        MADE(test_deep),
        MADE(test_odd_frames),
        MADE(test_pid_reused),
        MADE(test_margin),
        MADE(test_takes_idle),
        MADE(test_glance),
        MADE(test_notes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
