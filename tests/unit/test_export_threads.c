/* Which threads an export shows: those that were met, and who has what is of no thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <yyjson.h>

#include "sampler/base/cleanup.h"
#include "tests/unit/exported.h"

DEFINE_CLEANUP(yyjson_doc *, yyjson_doc_free)

#define ITEMS(array)                                                                               \
    {                                                                                              \
        (array), sizeof(array) / sizeof *(array)                                                   \
    }

static struct report_frame frame = { "py", "work", "/srv/a.py", 7, -1, -1 };
static const struct report_frame *frames[] = { &frame };
static struct report_stack stacks[] = { { .frames = ITEMS(frames), .hits = 3 } };
static struct report_stack memory_stacks[] = { { .frames = ITEMS(frames), .megabytes = 2 } };
static struct point points[] = { { 5, 1.5 } };
static struct report_stack_time times[] = { { .pid = 9, .tid = 9, .cpu_python_s = 0.5 } };
static struct report_run runs[] = { { .count = 4, .pid = 9, .tid = 9 } };

/* A shell, what it started, and what helps it. */
static struct report_thread threads[] = {
    { .pid = 5, .tid = 5, .name = "bash" },
    { .pid = 9, .tid = 9, .name = "MainThread" },
    { .pid = 9, .tid = 10 },
    { .pid = 11, .tid = 11 },
};

static const struct report shell_report = {
    .memory = true,
    .elapsed_time_sec = 1,
    .samples = ITEMS(points),
    .combined_stacks = ITEMS(stacks),
    .memory_stacks = ITEMS(memory_stacks),
    .stack_times = ITEMS(times),
    .timeline = ITEMS(runs),
    .threads = ITEMS(threads),
};

static yyjson_doc *gecko_of(const struct report *report)
{
    size_t size = 0;
    AUTO_FREE char *text = exported_bytes("gecko", report, &size);
    yyjson_doc *doc = yyjson_read(text, size, YYJSON_READ_NOFLAG);
    assert_non_null(doc);
    return doc;
}

static void test_helpers_are_no_rows(void **state)
{
    (void)state;
    CLEANUP(yyjson_doc_freep) yyjson_doc *doc = gecko_of(&shell_report);
    yyjson_val *shown = yyjson_doc_ptr_get(doc, "/threads");
    assert_int_equal(yyjson_arr_size(shown), 1);
    yyjson_val *thread = yyjson_arr_get_first(shown);
    assert_string_equal(yyjson_get_str(yyjson_obj_get(thread, "name")), "MainThread");
    assert_non_null(yyjson_obj_get(thread, "nativeAllocations"));
    assert_string_equal(yyjson_get_str(yyjson_doc_ptr_get(doc, "/counters/0/pid")), "9");
    assert_int_equal(yyjson_get_int(yyjson_doc_ptr_get(doc, "/counters/0/mainThreadIndex")), 0);
}

/* What was allocated has to stand somewhere. */
static void test_nobody_was_met(void **state)
{
    (void)state;
    struct report report = shell_report;
    report.stack_times.count = report.combined_stacks.count = report.timeline.count = 0;
    CLEANUP(yyjson_doc_freep) yyjson_doc *doc = gecko_of(&report);
    assert_int_equal(yyjson_arr_size(yyjson_doc_ptr_get(doc, "/threads")), 1);
    assert_non_null(yyjson_doc_ptr_get(doc, "/threads/0/nativeAllocations"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_helpers_are_no_rows),
        cmocka_unit_test(test_nobody_was_met),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
