/* Who did what on a stack: nothing is lost or counted twice, whatever is moved or full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/model/merge.h"
#include "output/model/stack_table.h"
#include "output/model/stack_times.h"
#include "tests/unit/replay.h"

static struct report *shop(void)
{
    struct profile_settings settings = replay_settings("/srv/shop");
    return replay_report("streams/shop.stream", &settings);
}

static void check_stacks(const struct report *report)
{
    AUTO_FREE int64_t *hits = calloc(report->combined_stacks.count, sizeof *hits);
    int64_t last = 0;
    for (size_t i = 0; i < report->stack_times.count; i++) {
        const struct report_stack_time *time = &report->stack_times.items[i];
        assert_in_range(time->stack_index, last, report->combined_stacks.count - 1);
        assert_true(time->pid > 0 && time->tid > 0);
        hits[time->stack_index] += time->hits;
        last = time->stack_index;
    }
    assert_int_equal(last, report->combined_stacks.count - 1);
    for (size_t i = 0; i < report->combined_stacks.count; i++)
        assert_int_equal(hits[i], report->combined_stacks.items[i].hits);
}

static void test_sums_are_the_stacks(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report = shop();
    check_stacks(report);
}

/* Threads of two runs are other threads, on the same stacks. */
static void test_merged(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report = shop();
    AUTO_REPORT struct report *merged = NULL;
    const struct report *const parts[] = { report, report };
    assert_int_equal(report_merge(parts, 2, "1.2.3", &merged), 0);
    check_stacks(merged);
    assert_int_equal(merged->stack_times.count, 2 * report->stack_times.count);
    assert_float_equal(merged->stack_times.items[0].idle_s, report->stack_times.items[0].idle_s,
                       1e-9);
}

/* Every thread of the stream has frames at each look, so that all time is some stack's. */
static void test_sums_are_the_totals(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report = shop();
    struct report_totals sum = { 0 };
    for (size_t i = 0; i < report->stack_times.count; i++) {
        const struct report_stack_time *time = &report->stack_times.items[i];
        sum.cpu_python_s += time->cpu_python_s;
        sum.cpu_native_s += time->cpu_native_s;
        sum.cpu_kernel_s += time->cpu_kernel_s;
        sum.idle_s += time->idle_s;
        for (size_t kind = 0; kind < WAIT_KINDS; kind++)
            sum.wait_s.seconds[kind] += time->wait_s.seconds[kind];
    }
    assert_float_equal(sum.cpu_python_s, report->totals.cpu_python_s, 1e-9);
    assert_float_equal(sum.cpu_native_s, report->totals.cpu_native_s, 1e-9);
    assert_float_equal(sum.cpu_kernel_s, report->totals.cpu_kernel_s, 1e-9);
    assert_float_equal(sum.idle_s, report->totals.idle_s, 1e-9);
    for (size_t kind = 0; kind < WAIT_KINDS; kind++)
        assert_float_equal(sum.wait_s.seconds[kind], report->totals.wait_s.seconds[kind], 1e-9);
}

static void test_moved(void **state)
{
    (void)state;
    struct stack_times times = { 0 };
    const struct charge charge = { .python_ns = 5, .wait_ns = 7, .wait_kind = 2, .samples = 1 };
    for (uint32_t stack = 0; stack < 4; stack++)
        for (uint32_t thread = 0; thread <= stack; thread++)
            assert_int_equal(stack_times_add(&times, stack, thread, &charge, 1), 0);
    static const uint32_t moved[] = { STACK_NONE, 8, STACK_NONE, 1 };
    assert_int_equal(stack_times_move(&times, moved), 0);
    assert_int_equal(times.index.count, 2 + 4);
    assert_int_equal(stack_times_add(&times, 8, 1, &charge, 0), 0);
    assert_int_equal(times.index.count, 2 + 4);
    assert_int_equal(times.items[1].stack, 8);
    assert_int_equal(times.items[1].samples, 2);
    assert_int_equal(times.items[1].hits, 1);
    assert_int_equal(times.items[1].wait_ns[2], 14);
    stack_times_done(&times);
}

static void test_bounded(void **state)
{
    (void)state;
    struct stack_times times = { 0 };
    const struct charge charge = { .kernel_ns = 3, .samples = 1 };
    const struct charge nothing = { .samples = 0 };
    const size_t threads = STACK_TIMES_MAX;
    for (uint32_t thread = 0; thread < threads; thread++)
        for (uint32_t stack = 0; stack < 2; stack++)
            assert_int_equal(stack_times_add(&times, stack, thread, &charge, 1), 0);
    assert_int_equal(stack_times_add(&times, 7, 0, &nothing, 0), 0);
    assert_int_equal(times.index.count, STACK_TIMES_MAX + 2);
    uint64_t samples = 0;
    for (size_t i = 0; i < times.index.count; i++)
        samples += times.items[i].samples;
    assert_int_equal(samples, 2 * threads);
    assert_int_equal(times.items[STACK_TIMES_MAX].thread, UINT32_MAX);
    assert_int_equal(times.items[STACK_TIMES_MAX].hits, threads / 2);
    stack_times_done(&times);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_are_the_stacks),
        cmocka_unit_test(test_sums_are_the_totals),
        cmocka_unit_test(test_merged),
        cmocka_unit_test(test_moved),
        cmocka_unit_test(test_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
