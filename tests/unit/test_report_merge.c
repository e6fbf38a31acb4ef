/* Profiles merged: every sum is the sum, shares are of all, and nothing of two runs is mixed up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "output/json/profile_json.h"
#include "output/model/columns.h"
#include "output/model/merge.h"
#include "tests/unit/golden.h"
#include "tests/unit/replay.h"

static char *write_text(const struct report *report)
{
    char *text = NULL;
    size_t size = 0;
    FILE *into = open_memstream(&text, &size);
    assert_non_null(into);
    assert_int_equal(profile_json_write(report, into), 0);
    assert_int_equal(fclose(into), 0);
    return text;
}

/* As it would be read from its file. */
static struct report *read_again(const struct report *report)
{
    AUTO_FREE char *text = write_text(report);
    struct report *again = NULL;
    struct failure why = { 0 };
    if (profile_json_read(text, strlen(text), "p.json", "1.2.3", &again, &why))
        fail_msg("%s", why.text);
    return again;
}

static struct report *shop_report(void)
{
    struct profile_settings settings = replay_settings("/srv/shop");
    AUTO_REPORT struct report *report = replay_report("streams/shop.stream", &settings);
    return read_again(report);
}

static struct report *memory_report(void)
{
    struct profile_settings settings = replay_settings("/srv/cache");
    settings.program = "/srv/cache/main.py";
    settings.memory = settings.leak_detector = true;
    settings.allocation_window = 524287;
    settings.start_time_absolute = 1700000000;
    settings.start_time_perf = 500;
    AUTO_REPORT struct report *report = replay_report("streams/memory.stream", &settings);
    return read_again(report);
}

static struct report *merge_two(const struct report *a, const struct report *b)
{
    const struct report *const parts[] = { a, b };
    struct report *merged = NULL;
    assert_int_equal(report_merge(parts, 2, "1.2.3", &merged), 0);
    return merged;
}

/* ---- sums ---- */

/* Of all lines and functions: time, memory and counts. */
struct sums {
    double seconds, waits, cumulative, megabytes, samples, processes;
};

static void stats_sum(const struct line_stats *stats, struct sums *sums)
{
    sums->seconds +=
        stats->cpu_python_s + stats->cpu_native_s + stats->cpu_kernel_s + stats->idle_s;
    for (size_t i = 0; i < WAIT_KINDS; i++)
        sums->waits += stats->wait_s.seconds[i];
    sums->cumulative += stats->cumulative_s;
    sums->megabytes += stats->allocated_mb + stats->freed_mb + stats->live_mb + stats->n_malloc_mb;
    sums->samples += (double)(stats->samples + stats->n_mallocs);
    sums->processes += (double)stats->n_processes;
}

static struct sums report_sum(const struct report *report)
{
    struct sums sums = { 0 };
    for (size_t i = 0; i < report->files.count; i++) {
        const struct report_file *file = &report->files.items[i];
        for (size_t n = 0; n < file->lines.count; n++)
            stats_sum(&file->lines.items[n], &sums);
        for (size_t n = 0; n < file->functions.count; n++)
            stats_sum(&file->functions.items[n], &sums);
    }
    return sums;
}

static double totals_sum(const struct report *report)
{
    const struct report_totals *totals = &report->totals;
    const struct report_sampling *sampling = &report->sampling;
    double sum = totals->elapsed_s + report_base_s(report) + totals->allocated_mb +
                 totals->freed_mb + totals->live_mb + totals->copied_mb + sampling->paused_s +
                 sampling->profiler_cpu_s +
                 (double)(sampling->samples + sampling->retried + sampling->dropped +
                          sampling->missed + sampling->pauses + sampling->shim_records);
    for (size_t i = 0; i < WAIT_KINDS; i++)
        sum += totals->wait_s.seconds[i];
    return sum;
}

static double stacks_sum(const struct report *report)
{
    double sum = 0;
    for (size_t i = 0; i < report->combined_stacks.count; i++)
        sum += (double)report->combined_stacks.items[i].hits;
    for (size_t i = 0; i < report->memory_stacks.count; i++)
        sum += report->memory_stacks.items[i].megabytes + report_stack_live_mb(report, i);
    for (size_t i = 0; i < report->stacks.count; i++)
        sum += (double)report->stacks.items[i].count;
    for (size_t i = 0; i < report->timeline.count; i++)
        sum += (double)report->timeline.items[i].count;
    return sum;
}

#define NEAR 1e-9

static void assert_sums(const struct report *report, const struct report *a, const struct report *b)
{
    struct sums got = report_sum(report), one = report_sum(a), other = report_sum(b);
    assert_float_equal(got.seconds, one.seconds + other.seconds, NEAR);
    assert_float_equal(got.waits, one.waits + other.waits, NEAR);
    assert_float_equal(got.cumulative, one.cumulative + other.cumulative, NEAR);
    assert_float_equal(got.megabytes, one.megabytes + other.megabytes, 1e-6);
    assert_float_equal(got.samples, one.samples + other.samples, 0);
    assert_float_equal(got.processes, one.processes + other.processes, 0);
    assert_float_equal(totals_sum(report), totals_sum(a) + totals_sum(b), 1e-6);
    assert_float_equal(stacks_sum(report), stacks_sum(a) + stacks_sum(b), 1e-6);
}

static void test_two_programs(void **state)
{
    (void)state;
    AUTO_REPORT struct report *shop = shop_report();
    AUTO_REPORT struct report *memory = memory_report();
    AUTO_REPORT struct report *merged = merge_two(shop, memory);
    assert_sums(merged, shop, memory);
    AUTO_FREE char *text = write_text(merged);
    assert_golden("profile/merged.json", text);
}

/* ---- a profile with itself ---- */

static void check_doubled(const struct line_stats *got, const struct line_stats *once)
{
    assert_float_equal(got->cpu_python_s, 2 * once->cpu_python_s, 0);
    assert_float_equal(got->idle_s, 2 * once->idle_s, 0);
    assert_float_equal(got->allocated_mb, 2 * once->allocated_mb, 0);
    assert_int_equal(got->samples, 2 * once->samples);
    assert_float_equal(got->n_cpu_percent_python, once->n_cpu_percent_python, 1e-3);
    assert_float_equal(got->n_sys_percent, once->n_sys_percent, 1e-3);
    assert_float_equal(got->error_percent, once->error_percent / sqrt(2), 1e-5);
    assert_float_equal(got->n_peak_mb, once->n_peak_mb, 0);
    assert_float_equal(got->at_peak_mb, once->at_peak_mb, 0);
    assert_float_equal(got->n_copy_mb_s, once->n_copy_mb_s, 1e-9);
    assert_float_equal(got->n_core_utilization, once->n_core_utilization, 1e-9);
    assert_int_equal(got->memory_samples.count, once->memory_samples.count);
}

static void check_with_itself(const struct report *once)
{
    AUTO_REPORT struct report *merged = merge_two(once, once);
    assert_sums(merged, once, once);
    assert_int_equal(merged->files.count, once->files.count);
    for (size_t i = 0; i < once->files.count; i++) {
        const struct report_file *file = &once->files.items[i], *got = &merged->files.items[i];
        assert_int_equal(got->lines.count, file->lines.count);
        assert_int_equal(got->functions.count, file->functions.count);
        assert_int_equal(got->leaks.count, file->leaks.count);
        assert_float_equal(got->percent_cpu_time, file->percent_cpu_time, 1e-9);
        for (size_t n = 0; n < file->lines.count; n++)
            check_doubled(&got->lines.items[n], &file->lines.items[n]);
    }
    assert_int_equal(merged->combined_stacks.count, once->combined_stacks.count);
    assert_float_equal(merged->max_footprint_mb, once->max_footprint_mb, 0);
    assert_int_equal(merged->samples.count, once->samples.count);
}

static void test_with_itself(void **state)
{
    (void)state;
    AUTO_REPORT struct report *shop = shop_report();
    AUTO_REPORT struct report *memory = memory_report();
    check_with_itself(shop);
    check_with_itself(memory);
}

/* ---- order ---- */

static void assert_equal_sums(const struct report *a, const struct report *b)
{
    struct sums one = report_sum(a), other = report_sum(b);
    assert_float_equal(one.seconds, other.seconds, NEAR);
    assert_float_equal(one.megabytes, other.megabytes, 1e-6);
    assert_float_equal(one.samples, other.samples, 0);
    assert_float_equal(totals_sum(a), totals_sum(b), 1e-6);
    assert_float_equal(stacks_sum(a), stacks_sum(b), 1e-6);
    assert_float_equal(a->start_time_absolute, b->start_time_absolute, 0);
    assert_int_equal(a->files.count, b->files.count);
    for (size_t i = 0; i < a->files.count; i++) {
        const struct report_file *left = &a->files.items[i], *right = &b->files.items[i];
        assert_string_equal(left->path, right->path);
        assert_int_equal(left->lines.count, right->lines.count);
        for (size_t n = 0; n < left->lines.count; n++) {
            const struct line_stats *line = &left->lines.items[n], *same = &right->lines.items[n];
            assert_string_equal(line->line, same->line);
            assert_float_equal(line->cpu_python_s, same->cpu_python_s, NEAR);
            assert_float_equal(line->n_cpu_percent_c, same->n_cpu_percent_c, 1e-6);
            assert_float_equal(line->error_percent, same->error_percent, 1e-6);
            assert_float_equal(line->at_peak_mb, same->at_peak_mb, NEAR);
        }
    }
}

static void test_order(void **state)
{
    (void)state;
    AUTO_REPORT struct report *shop = shop_report();
    AUTO_REPORT struct report *memory = memory_report();
    AUTO_REPORT struct report *here = merge_two(shop, memory);
    AUTO_REPORT struct report *there = merge_two(memory, shop);
    AUTO_REPORT struct report *left = merge_two(here, shop);
    AUTO_REPORT struct report *twice = merge_two(shop, shop);
    AUTO_REPORT struct report *right = merge_two(memory, twice);
    assert_equal_sums(here, there);
    assert_equal_sums(left, right);
}

/* ---- pids ---- */

static const struct report_process *process_find(const struct report *report, int64_t pid)
{
    for (size_t i = 0; i < report->processes.count; i++)
        if (report->processes.items[i].pid == pid)
            return &report->processes.items[i];
    fail_msg("no process %lld", (long long)pid);
    return NULL;
}

static void test_pids(void **state)
{
    (void)state;
    AUTO_REPORT struct report *shop = shop_report();
    AUTO_REPORT struct report *merged = merge_two(shop, shop);
    assert_int_equal(merged->processes.count, 2 * shop->processes.count);
    assert_int_equal(merged->threads.count, 2 * shop->threads.count);
    assert_int_equal(process_find(merged, 200)->ppid, 100);
    assert_int_equal(process_find(merged, MERGE_PID_STEP + 200)->ppid, MERGE_PID_STEP + 100);
    AUTO_REPORT struct report *more = merge_two(merged, merged);
    for (int64_t i = 0; i < 4; i++)
        assert_int_equal(process_find(more, i * MERGE_PID_STEP + 200)->ppid,
                         i * MERGE_PID_STEP + 100);
    for (size_t i = 0; i < more->threads.count; i++)
        assert_non_null(process_find(more, more->threads.items[i].pid));
    for (size_t i = 0; i < more->timeline.count; i++)
        assert_non_null(process_find(more, more->timeline.items[i].pid));
}

/* ---- versions of a file ---- */

static struct line_stats old_lines[] = {
    { .lineno = 1, .line = "import os\n" },
    { .lineno = 2, .line = "def gone():\n", .cpu_python_s = 0.25, .samples = 1 },
    { .lineno = 3, .line = "    return [os.getpid() for _ in range(9)]\n", .cpu_python_s = 1 },
    { .lineno = 4, .line = "print(sum(gone()))\n", .cpu_python_s = 2 },
};
static struct line_stats new_lines[] = {
    { .lineno = 1, .line = "# a remark\n" },
    { .lineno = 2, .line = "import os\n" },
    { .lineno = 3, .line = "x = 1\n", .cpu_python_s = 0.5 },
    { .lineno = 4, .line = "print(sum(gone()))\n", .cpu_python_s = 4 },
};
static struct line_stats blank_lines[] = {
    { .lineno = 1, .line = "" },
    { .lineno = 2, .line = "" },
    { .lineno = 3, .line = "" },
    { .lineno = 4, .line = "" },
    { .lineno = 5, .line = "", .cpu_python_s = 8 },
};
static struct line_stats old_functions[] = { { .lineno = 2, .line = "gone", .cpu_python_s = 1 } };
static struct line_stats new_functions[] = { { .lineno = 7, .line = "gone", .cpu_python_s = 2 } };
static struct report_leak old_leaks[] = { { "4", 0.96, 2, 10, { NULL, 0 } } };
static struct report_leak new_leaks[] = { { "4", 0.99, 4, 20, { NULL, 0 } } };

#define LIST(array)                                                                                \
    {                                                                                              \
        (array), sizeof(array) / sizeof *(array)                                                   \
    }
static struct report_file old_file = { "/a.py",         50,
                                       LIST(old_lines), LIST(old_functions),
                                       LIST(old_leaks), { NULL, 0 } };
static struct report_file new_file = { "/a.py",         50,
                                       LIST(new_lines), LIST(new_functions),
                                       LIST(new_leaks), { NULL, 0 } };
static struct report_file blank_file = { .path = "/a.py", .lines = LIST(blank_lines) };

static struct report report_of(struct report_file *file, double start, double cpu_s)
{
    return (struct report){
        .start_time_absolute = start,
        .elapsed_time_sec = cpu_s,
        .files = { file, 1 },
        .totals = { .elapsed_s = cpu_s, .cpu_python_s = cpu_s },
    };
}

static bool is_noted(const struct report *report, const char *text)
{
    for (size_t i = 0; i < report->notes.count; i++)
        if (strstr(report->notes.items[i], text))
            return true;
    return false;
}

static void check_versions(const struct report *one, const struct report *other)
{
    AUTO_REPORT struct report *merged = merge_two(one, other);
    const struct report_file *file = &merged->files.items[0];
    assert_int_equal(merged->files.count, 1);
    assert_int_equal(file->lines.count, 4);
    assert_string_equal(file->lines.items[0].line, "# a remark\n");
    assert_float_equal(file->lines.items[1].cpu_python_s, 1.25, NEAR); /* what is gone is here */
    assert_float_equal(file->lines.items[2].cpu_python_s, 0.5, NEAR);
    assert_float_equal(file->lines.items[3].cpu_python_s, 6, NEAR);
    assert_float_equal(file->lines.items[3].n_cpu_percent_python, 75, NEAR);
    assert_float_equal(file->percent_cpu_time, 50, NEAR);
    assert_int_equal(file->functions.count, 1);
    assert_float_equal(file->functions.items[0].cpu_python_s, 3, NEAR);
    assert_int_equal(file->leaks.count, 1);
    assert_string_equal(file->leaks.items[0].lineno, "4");
    assert_float_equal(file->leaks.items[0].likelihood, 0.99, 0);
    assert_float_equal(file->leaks.items[0].live_mb, 30, NEAR);
    assert_float_equal(file->leaks.items[0].velocity_mb_s, 3, NEAR);
    assert_true(is_noted(merged, "/a.py is not the same"));
    assert_true(is_noted(merged, "1.25 s of those that are gone"));
}

static void test_versions(void **state)
{
    (void)state;
    const struct report older = report_of(&old_file, 1000, 4);
    const struct report newer = report_of(&new_file, 2000, 4);
    check_versions(&newer, &older);
    check_versions(&older, &newer);
}

/* Without a source, lines are numbers, and nothing differs. */
static void test_no_source(void **state)
{
    (void)state;
    const struct report older = report_of(&old_file, 1000, 4);
    const struct report blank = report_of(&blank_file, 3000, 8);
    AUTO_REPORT struct report *merged = merge_two(&older, &blank);
    const struct report_file *file = &merged->files.items[0];
    assert_int_equal(file->lines.count, 4);
    assert_string_equal(file->lines.items[3].line, "print(sum(gone()))\n");
    assert_float_equal(file->lines.items[3].cpu_python_s, 10, NEAR);
    assert_false(is_noted(merged, "/a.py is not the same"));
}

/* ---- bounds ---- */

static struct report *tall_report(size_t first, size_t count)
{
    struct report *report = report_new();
    assert_non_null(report);
    struct report_stack *stacks = arena_take(&report->arena, count * sizeof *stacks);
    struct report_run *runs = arena_take(&report->arena, 8 * count * sizeof *runs);
    struct report_frame *frames = arena_take(&report->arena, count * sizeof *frames);
    const struct report_frame **pointers = arena_take(&report->arena, count * sizeof *pointers);
    for (size_t i = 0; i < count; i++) {
        frames[i] = (struct report_frame){ "py", "f", "a.py", (int64_t)(first + i), -1, -1 };
        pointers[i] = &frames[i];
        stacks[i].frames.items = &pointers[i];
        stacks[i].frames.count = 1;
        stacks[i].hits = 1 + (first + i == 0);
        for (size_t n = 0; n < 8; n++)
            runs[8 * i + n] = (struct report_run){ .t_sec = (double)i, .stack_index = (int64_t)i };
    }
    report->combined_stacks.items = stacks;
    report->combined_stacks.count = count;
    report->timeline.items = runs;
    report->timeline.count = 8 * count;
    return report;
}

static void test_bounds(void **state)
{
    (void)state;
    enum { STACKS = 8000, ALL = 16000, KEPT = 10000, RUNS = 100000 };
    AUTO_REPORT struct report *a = tall_report(0, STACKS);
    AUTO_REPORT struct report *b = tall_report(STACKS, STACKS);
    AUTO_REPORT struct report *merged = merge_two(b, a);
    assert_int_equal(merged->combined_stacks.count, KEPT);
    assert_int_equal(merged->combined_stacks.items[0].hits, 2);
    assert_true(is_noted(merged, "left out: 6000 of the stacks"));
    assert_int_equal(merged->timeline.count, 8 * KEPT);
    assert_true(is_noted(merged, "left out: 48000 entries of the timeline"));
    for (size_t i = 0; i < merged->timeline.count; i++)
        assert_in_range(merged->timeline.items[i].stack_index, 0, KEPT - 1);
    AUTO_REPORT struct report *c = tall_report(0, KEPT);
    AUTO_REPORT struct report *again = merge_two(merged, c);
    assert_int_equal(again->timeline.count, RUNS);
}

/* ---- the columns ---- */

/* Where memory was profiled by one alone. */
static void test_peak(void **state)
{
    (void)state;
    AUTO_REPORT struct report *memory = memory_report();
    struct report small = report_of(&old_file, 1, 1);
    small.memory = true;
    small.max_footprint_mb = memory->max_footprint_mb / 2;
    old_lines[0].at_peak_mb = 1;
    AUTO_REPORT struct report *merged = merge_two(&small, memory);
    old_lines[0].at_peak_mb = 0;
    assert_float_equal(merged->max_footprint_mb, memory->max_footprint_mb, 0);
    assert_string_equal(merged->max_footprint_fname, memory->max_footprint_fname);
    assert_float_equal(line_find(merged, "/a.py", 1)->at_peak_mb, 0, 0);
    assert_true(is_noted(merged, "the peak of memory is the largest"));
    assert_true(is_noted(merged, "different programs"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_programs), cmocka_unit_test(test_with_itself),
        cmocka_unit_test(test_order),        cmocka_unit_test(test_pids),
        cmocka_unit_test(test_versions),     cmocka_unit_test(test_no_source),
        cmocka_unit_test(test_bounds),       cmocka_unit_test(test_peak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
