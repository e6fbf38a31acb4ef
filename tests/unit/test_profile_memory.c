/* Where memory goes: to which line, while which process lives, and what was there when most was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/replay.h"

#define MAIN "/srv/cache/main.py"
#define MB ((uint64_t)1 << 20)

enum { BLOCKS_LIVE = (1 << 20) + 1000 };

static struct profile_settings memory_settings(void)
{
    struct profile_settings settings = replay_settings("/srv/cache");
    settings.program = MAIN;
    settings.memory = settings.leak_detector = true;
    return settings;
}

static struct report *replayed(void)
{
    struct profile_settings settings = memory_settings();
    return replay_report("streams/memory.stream", &settings);
}

/* ---- the stream: its numbers are whole ones, to be added up by hand ---- */

static void test_lines(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report = replayed();
    const struct line_stats *table = line_find(report, MAIN, 7);
    assert_float_equal(table->allocated_mb, 6, 1e-9); /* 2 of it below json.loads */
    assert_float_equal(table->n_python_fraction, 2. / 6, 1e-9);
    assert_int_equal(table->n_mallocs, 32769); /* 2 MB in pieces of 64 bytes, and one of 4 MB */
    assert_float_equal(table->live_mb, 6, 1e-9);
    const struct line_stats *page = line_find(report, MAIN, 12);
    assert_float_equal(page->allocated_mb, 40 * 8 + 16 + 1, 1e-9);
    assert_float_equal(page->n_malloc_mb, page->allocated_mb, 0);
    assert_float_equal(page->freed_mb, 40 * 8, 1e-9); /* the last one by another thread */
    assert_float_equal(page->live_mb, 16, 1e-9);      /* the child ended with the others */
    assert_float_equal(page->n_peak_mb, 2 * 8 + 16, 1e-9);
    assert_int_equal(page->n_mallocs, 42);
    assert_float_equal(page->n_avg_mb, page->allocated_mb / 42, 1e-9);
    assert_float_equal(page->n_usage_fraction, 337. / 389, 1e-9);
    assert_int_equal(page->n_processes, 2);
    const struct line_stats *kept = line_find(report, MAIN, 13);
    assert_float_equal(kept->allocated_mb, 42, 1e-9);
    assert_float_equal(kept->freed_mb, 1.5, 1e-9); /* both were made smaller */
    assert_float_equal(kept->live_mb, 39.5 + 1, 1e-9);
    assert_float_equal(kept->n_growth_mb, 38, 1e-9); /* the last two had no time to stay */
    assert_float_equal(line_find(report, MAIN, 14)->n_copy_mb_s, 40 / 0.25, 1e-9);
    assert_float_equal(line_find(report, MAIN, 14)->allocated_mb, 0, 0);
}

/* Each process at its own peak: the parent with two pages, all of its cache and the rest. */
static void test_at_peak(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report = replayed();
    assert_float_equal(line_find(report, MAIN, 7)->at_peak_mb, 6, 1e-9);
    assert_float_equal(line_find(report, MAIN, 12)->at_peak_mb, 2 * 8 + 16, 1e-9);
    assert_float_equal(line_find(report, MAIN, 13)->at_peak_mb, 39 + 2, 1e-9);
    assert_float_equal(report->processes.items[0].peak_footprint_mb, 6 + 3 + 1 + 16 + 39, 1e-9);
    assert_float_equal(report->processes.items[1].peak_footprint_mb, 18, 1e-9);
}

static void test_functions(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report = replayed();
    const struct report_file *file = file_find(report, MAIN);
    assert_string_equal(file->functions.items[1].line, "serve");
    assert_float_equal(file->functions.items[1].allocated_mb, 337 + 42, 1e-9);
    assert_float_equal(file->functions.items[1].n_copy_mb_s, 160, 1e-9);
    assert_float_equal(file->functions.items[1].n_peak_mb, 2 * 8 + 24 + 17, 1e-9);
}

static void test_run(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report = replayed();
    assert_true(report->memory);
    /* what was lost counts in the totals */
    assert_float_equal(report->totals.allocated_mb, 6 + 3 + 1 + 337 + 42 + 1, 1e-9);
    assert_float_equal(report->totals.freed_mb, 3 + 320 + 1.5 + 0.5, 1e-9);
    assert_float_equal(report->totals.live_mb, 6 + 1 + 39.5 + 17, 1e-9);
    assert_float_equal(report->totals.copied_mb, 40, 1e-9);
    assert_float_equal(report->native_allocations_mb, 3, 1e-9);
    /* parent and child at the same time, before the child ended */
    assert_float_equal(report->max_footprint_mb, 10 + 16 + 24 + 17, 1e-9);
    assert_float_equal(report->max_footprint_python_fraction, 60. / 67, 1e-9);
    assert_string_equal(report->max_footprint_fname, MAIN);
    assert_int_equal(report->max_footprint_lineno, 12);
    assert_int_equal(report->alloc_samples, 150);
    assert_int_equal(report->sampling.shim_lost, 2);
    assert_true(report->samples.count > 50 && report->samples.count <= 100);
    double most = 0;
    for (size_t i = 0; i < report->samples.count; i++)
        most =
            report->samples.items[i].megabytes > most ? report->samples.items[i].megabytes : most;
    assert_float_equal(most, 67, 1e-9);
}

/* Of shown frames, the most memory first. */
static void test_stacks(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report = replayed();
    assert_int_equal(report->memory_stacks.count, 3);
    const struct report_stack *first = &report->memory_stacks.items[0];
    assert_float_equal(first->megabytes, 337, 1e-9);
    assert_int_equal(first->frames.count, 2);
    assert_string_equal(first->frames.items[1]->display_name, "serve");
    assert_int_equal(first->frames.items[1]->line, 12);
    assert_float_equal(report->memory_stacks.items[2].megabytes, 6, 1e-9);
    static const int lines[] = { 12, 13, 7 };
    assert_int_equal(report->memory_stacks_live_mb.count, 3);
    for (size_t i = 0; i < 3; i++) /* each line has one stack here */
        assert_float_equal(report_stack_live_mb(report, i),
                           line_find(report, MAIN, lines[i])->live_mb, 1e-9);
}

/* The cache leaks; the page that is rebound, and the table, do not. */
static void test_leak(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report = replayed();
    const struct report_file *file = file_find(report, MAIN);
    assert_int_equal(file->leaks.count, 1);
    assert_string_equal(file->leaks.items[0].lineno, "13");
    assert_true(file->leaks.items[0].likelihood >= 0.95 && file->leaks.items[0].likelihood < 1);
    assert_float_equal(file->leaks.items[0].velocity_mb_s, 40 / 0.195, 5);
    assert_int_equal(file->leaks.items[0].stack.count, 2);
    assert_string_equal(file->leaks.items[0].stack.items[1], MAIN " serve:13;");

    struct profile_settings settings = memory_settings();
    settings.leak_detector = false;
    AUTO_REPORT struct report *without = replay_report("streams/memory.stream", &settings);
    assert_int_equal(file_find(without, MAIN)->leaks.count, 0);
}

/* ---- single events ---- */

struct made {
    struct profile *profile;
    struct profile_settings settings;
};

static int made_new(void **state)
{
    struct made *made = calloc(1, sizeof *made);
    made->settings = memory_settings();
    *state = made;
    return profile_new(&made->settings, &made->profile);
}

static int made_free(void **state)
{
    struct made *made = *state;
    profile_free(made->profile);
    free(made);
    return 0;
}

static void tell_weight(struct made *made, enum memory_change change, pid_t pid, uint64_t block,
                        uint64_t size, double weight, int line)
{
    static uint64_t time_ns;
    const struct frame_event frame = {
        .kind = FRAME_PYTHON, .name = "f", .file = MAIN, .line = line, .first_line = 1
    };
    const struct memory_event event = { .time_ns = time_ns += 1000000,
                                        .pid = pid,
                                        .tid = pid,
                                        .change = change,
                                        .block = block,
                                        .size_bytes = size,
                                        .weight_bytes = weight,
                                        .frames = &frame,
                                        .frame_count = 1 };
    assert_int_equal(profile_add_memory(made->profile, &event), 0);
}

static void tell(struct made *made, enum memory_change change, pid_t pid, uint64_t block,
                 uint64_t size, int line)
{
    tell_weight(made, change, pid, block, size, (double)size, line);
}

static struct report *made_report(struct made *made)
{
    struct report *report = NULL;
    assert_int_equal(profile_report(made->profile, &report), 0);
    return report;
}

/* A block that grew belongs to two lines; it shrinks from its end. */
static void test_growing_block(void **state)
{
    struct made *made = *state;
    tell(made, MEMORY_ALLOCATED, 1, 5, 4 * MB, 2);
    tell(made, MEMORY_ALLOCATED, 1, 5, 2 * MB, 3);
    tell(made, MEMORY_RESIZED, 1, 5, 5 * MB, 0);
    AUTO_REPORT struct report *first = made_report(made);
    assert_float_equal(line_find(first, MAIN, 2)->live_mb, 4, 1e-9);
    assert_float_equal(line_find(first, MAIN, 3)->live_mb, 1, 1e-9);
    tell(made, MEMORY_RESIZED, 1, 5, MB, 0);
    tell(made, MEMORY_RESIZED, 1, 5, 3 * MB, 0); /* says nothing: growth is told as allocated */
    AUTO_REPORT struct report *second = made_report(made);
    assert_float_equal(line_find(second, MAIN, 2)->live_mb, 1, 1e-9);
    assert_float_equal(line_find(second, MAIN, 3)->live_mb, 0, 1e-9);
    assert_float_equal(line_find(second, MAIN, 2)->freed_mb, 3, 1e-9);
    tell(made, MEMORY_FREED, 1, 5, 0, 0);
    tell(made, MEMORY_FREED, 1, 5, 0, 0); /* nobody's any more */
    AUTO_REPORT struct report *third = made_report(made);
    assert_float_equal(third->totals.live_mb, 0, 1e-9);
    assert_float_equal(third->totals.freed_mb, 6, 1e-9);
}

static void process_tell(struct made *made, pid_t pid, double start_s, double end_s)
{
    const struct process_event process = {
        .pid = pid, .rank = -1, .exit_status = -1, .start_s = start_s, .end_s = end_s
    };
    assert_int_equal(profile_add_process(made->profile, &process), 0);
}

/* An exec, an end, and another process with the same number: nobody freed what was before, and it
 * is in nobody's way. */
static void test_process_ends(void **state)
{
    struct made *made = *state;
    process_tell(made, 1, 0, 0);
    tell(made, MEMORY_ALLOCATED, 1, 1, 8 * MB, 2);
    tell(made, MEMORY_EMPTIED, 1, 0, 0, 0);
    tell(made, MEMORY_ALLOCATED, 1, 1, 2 * MB, 3);
    AUTO_REPORT struct report *image = made_report(made);
    assert_float_equal(image->totals.live_mb, 8 + 2, 1e-9);
    assert_float_equal(image->samples.items[image->samples.count - 1].megabytes, 2, 1e-9);
    assert_float_equal(image->totals.freed_mb, 0, 0);
    assert_float_equal(line_find(image, MAIN, 2)->at_peak_mb, 8, 1e-9);
    assert_float_equal(line_find(image, MAIN, 3)->at_peak_mb, 0, 1e-9);
    process_tell(made, 1, 0, 1);
    process_tell(made, 1, 0, 1);
    tell(made, MEMORY_ALLOCATED, 1, 9, MB, 4); /* its last words */
    process_tell(made, 1, 2, 0);
    tell(made, MEMORY_ALLOCATED, 1, 1, MB, 2);
    AUTO_REPORT struct report *again = made_report(made);
    assert_float_equal(again->totals.live_mb, 8 + 2 + 1, 1e-9);
    assert_float_equal(again->samples.items[again->samples.count - 1].megabytes, 1, 1e-9);
    assert_float_equal(line_find(again, MAIN, 2)->at_peak_mb, 8 + 1, 1e-9);
    assert_float_equal(line_find(again, MAIN, 4)->allocated_mb, 1, 1e-9);
    assert_float_equal(again->max_footprint_mb, 8, 1e-9);
    assert_int_equal(again->processes.count, 2);
}

/* While nobody looks nothing is allocated, and what was there may go. */
static void test_muted(void **state)
{
    struct made *made = *state;
    tell(made, MEMORY_ALLOCATED, 1, 1, 4 * MB, 2);
    tell(made, MEMORY_ALLOCATED, 1, 2, 4 * MB, 2);
    profile_mute(made->profile, true);
    tell(made, MEMORY_ALLOCATED, 1, 3, 4 * MB, 2);
    tell(made, MEMORY_COPIED, 1, 0, 4 * MB, 2);
    tell(made, MEMORY_FREED, 1, 1, 0, 0);
    tell(made, MEMORY_RESIZED, 1, 2, 3 * MB, 0);
    profile_mute(made->profile, false);
    AUTO_REPORT struct report *report = made_report(made);
    assert_float_equal(report->totals.allocated_mb, 8, 1e-9);
    assert_float_equal(report->totals.copied_mb, 0, 0);
    assert_float_equal(report->totals.live_mb, 3, 1e-9);
}

/* More blocks than are followed are counted as allocated, and said to be unknown otherwise. */
static void test_bound(void **state)
{
    struct made *made = *state;
    for (uint64_t i = 0; i < BLOCKS_LIVE; i++)
        tell(made, MEMORY_ALLOCATED, 1, i + 1, 64, 2);
    AUTO_REPORT struct report *report = made_report(made);
    assert_int_equal(line_find(report, MAIN, 2)->n_mallocs, BLOCKS_LIVE);
    assert_float_equal(report->totals.live_mb, (1 << 20) * 64. / MB, 1e-9);
    bool said = false;
    for (size_t i = 0; i < report->notes.count; i++)
        said |= strstr(report->notes.items[i], "live at once") != NULL;
    assert_true(said);
    for (uint64_t i = 0; i < BLOCKS_LIVE; i++)
        tell(made, MEMORY_FREED, 1, i + 1, 0, 0);
    AUTO_REPORT struct report *emptied = made_report(made);
    assert_float_equal(emptied->totals.live_mb, 0, 1e-6);
}

/* Of what was freed nothing is live, though sums of weights that are no whole numbers end a little
 * beside 0. */
static void test_nothing_is_left(void **state)
{
    enum { BLOCKS = 1000 };
    struct made *made = *state;
    for (uint64_t i = 0; i < BLOCKS; i++)
        tell_weight(made, MEMORY_ALLOCATED, 1, i + 1, 64, 524287 + (double)i / 7, 2);
    for (uint64_t i = 0; i < BLOCKS; i++)
        tell(made, MEMORY_FREED, 1, i * 37 % BLOCKS + 1, 0, 0);
    AUTO_REPORT struct report *report = made_report(made);
    const struct line_stats *line = line_find(report, MAIN, 2);
    assert_true(line->freed_mb > 499);
    assert_true(line->live_mb == 0 && report->totals.live_mb == 0);
    assert_int_equal(report->memory_stacks_live_mb.count, 1);
    assert_true(report_stack_live_mb(report, 0) == 0);
}

/* What is live stays with its stack, also when half of the stacks have gone and the others have new
 * numbers; what was live on those that went is on none. */
static void test_live_on_many_stacks(void **state)
{
    enum { STACKS = 12000, KEPT_FROM = 5000 };
    struct made *made = *state;
    for (uint64_t i = 1; i <= STACKS; i++)
        tell(made, MEMORY_ALLOCATED, 1, i, i << 20, (int)i);
    for (uint64_t i = 1; i <= STACKS; i += 2)
        tell(made, MEMORY_FREED, 1, i, 0, 0);
    AUTO_REPORT struct report *report = made_report(made);
    assert_int_equal(report->memory_stacks.count, STACKS - KEPT_FROM);
    assert_int_equal(report->memory_stacks_live_mb.count, STACKS - KEPT_FROM);
    for (size_t i = 0; i < report->memory_stacks.count; i++) {
        const struct report_stack *stack = &report->memory_stacks.items[i];
        int64_t line = stack->frames.items[0]->line;
        assert_true(line > KEPT_FROM);
        assert_float_equal(stack->megabytes, (double)line, 1e-9);
        double live = line % 2 ? 0 : (double)line;
        assert_float_equal(report_stack_live_mb(report, i), live, 1e-9);
    }
}

#define MADE(test) cmocka_unit_test_setup_teardown(test, made_new, made_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_at_peak),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_run),
        cmocka_unit_test(test_stacks),
        cmocka_unit_test(test_leak),
        MADE(test_growing_block),
        MADE(test_process_ends),
        MADE(test_muted),
        MADE(test_bound),
        MADE(test_nothing_is_left),
        MADE(test_live_on_many_stacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
