/* Names of any bytes and any length: every format stays valid, and tells its parts apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <yyjson.h>

#include "sampler/base/utf8.h"
#include "tests/unit/exported_messages.h"

static char longest[100001];

static const char *const names[] = {
    "a;b",
    "two\nlines\r",
    "\"quoted\" 'too' \\",
    "\x01\x1B[31m\x7F\t\f",
    "no UTF-8: \xFF\xC3( \xED\xA0\x80",
    "\xC2\x85 \xE2\x80\xA8 \xE2\x80\xA9", /* ends of lines, too */
    "größe 测量 \xF0\x9F\x90\x8D",
    " 7",
    "",
    longest,
};
enum { NAMES = sizeof names / sizeof *names };

/* The same name wherever there is one; the report borrows it all. */
struct named {
    struct report_frame python, native;
    const struct report_frame *frames[2];
    struct report_stack stacks[1], memory_stacks[1];
    struct report_stack_time times[1];
    struct report_run runs[1];
    struct report_thread threads[2];
    struct report_process processes[1];
    struct point points[1];
    const char *texts[1];
    struct report report;
};

static void named_fill(struct named *named, const char *name)
{
    *named = (struct named){
        .python = { "py", name, name, 7, -1, -1 },
        .native = { "native", name, name, -1, 4096, 16 },
        .frames = { &named->python, &named->native },
        .stacks = { { .frames = { named->frames, 2 }, .hits = 3 } },
        .memory_stacks = { { .frames = { named->frames, 1 }, .megabytes = 2 } },
        .times = { { .pid = 9, .tid = 9, .samples = 4, .hits = 3, .cpu_python_s = 0.5 } },
        .runs = { { .count = 4, .pid = 9, .tid = 9 } },
        .threads = { { .pid = 9, .tid = 9, .name = name }, { .pid = 9, .tid = 10, .name = name } },
        .processes = { { .pid = 9,
                         .rank = -1,
                         .exit_status = -1,
                         .argv = { named->texts, 1 },
                         .executable = name } },
        .points = { { 5, 1.5 } },
        .texts = { name },
    };
    named->times[0].wait_s.seconds[1] = 0.25;
    named->report = (struct report){
        .program = name,
        .memory = true,
        .elapsed_time_sec = 1,
        .samples = { named->points, 1 },
        .combined_stacks = { named->stacks, 1 },
        .memory_stacks = { named->memory_stacks, 1 },
        .stack_times = { named->times, 1 },
        .timeline = { named->runs, 1 },
        .threads = { named->threads, 2 },
        .processes = { named->processes, 1 },
        .notes = { named->texts, 1 },
    };
}

static size_t count_of(const char *text, char character)
{
    size_t count = 0;
    for (; *text; text++)
        count += *text == character;
    return count;
}

/* One line: a process, a thread and two frames, and at its end the number. */
static void check_collapsed(const struct report *report)
{
    size_t size = 0;
    AUTO_FREE char *text = exported_bytes("collapsed", report, &size);
    assert_int_equal(strlen(text), size);
    assert_true(utf8_is_valid(text));
    assert_int_equal(count_of(text, '\n'), 1);
    assert_int_equal(count_of(text, ';'), 3);
    for (size_t i = 0; i + 1 < size; i++)
        assert_false((unsigned char)text[i] < 0x20 || text[i] == 0x7F);
    assert_string_equal(text + size - 3, " 3\n");
}

static void check_json(const char *format, const struct report *report)
{
    size_t size = 0;
    yyjson_read_err error = { 0 };
    AUTO_FREE char *text = exported_bytes(format, report, &size);
    yyjson_doc *doc = yyjson_read_opts(text, size, YYJSON_READ_NOFLAG, NULL, &error);
    if (!doc)
        fail_msg("%s: %s", format, error.msg);
    yyjson_doc_free(doc);
}

static void check_messages(const struct report *report)
{
    Pprof__Profile *profile = exported_pprof(report);
    assert_int_equal(profile->n_sample, 3);
    for (size_t i = 0; i < profile->n_text; i++)
        assert_true(utf8_is_valid(profile->text[i]));
    pprof__profile__free_unpacked(profile, NULL);
    Perfetto__Trace *trace = exported_perfetto(report);
    for (size_t i = 0; i < trace->n_packet; i++) {
        const Perfetto__InternedData *data = trace->packet[i]->interned_data;
        for (size_t n = 0; data && n < data->n_event_names; n++)
            assert_true(utf8_is_valid(data->event_names[n]->name));
    }
    perfetto__trace__free_unpacked(trace, NULL);
}

static void test_names(void **state)
{
    (void)state;
    memset(longest, 'x', sizeof longest - 1);
    for (size_t i = 0; i < NAMES; i++) {
        struct named named;
        named_fill(&named, names[i]);
        check_collapsed(&named.report);
        check_json("speedscope", &named.report);
        check_json("gecko", &named.report);
        check_messages(&named.report);
    }
}

/* Code that was made in memory has no name, no module, and no place there. */
static void test_made_code(void **state)
{
    (void)state;
    struct named named;
    size_t size = 0;
    named_fill(&named, "name");
    named.native.display_name = named.native.filename_or_module = "";
    named.native.offset = 0;
    AUTO_FREE char *text = exported_bytes("collapsed", &named.report, &size);
    assert_non_null(strstr(text, ";[anonymous memory] 3\n"));
}

/* Numbers that are none, or point nowhere: they say nothing, and end nothing. */
static void test_numbers(void **state)
{
    (void)state;
    static const struct report_stack_time times[] = {
        { .stack_index = -1, .pid = 9, .tid = 9, .cpu_python_s = 1 },
        { .stack_index = 1, .pid = 9, .tid = 9, .cpu_python_s = 1 },
        { .stack_index = 0, .pid = INT64_MIN, .tid = INT64_MAX, .hits = INT64_MIN },
        { .stack_index = 0, .pid = 9, .tid = 9, .hits = INT64_MAX, .cpu_python_s = 1e300 },
        { .stack_index = 0, .pid = 8, .tid = -7, .samples = 1, .idle_s = -1 },
        { .stack_index = 0, .pid = 8, .tid = 8, .samples = 1, .idle_s = (double)NAN },
    };
    static const struct report_run runs[] = {
        { .stack_index = 5, .pid = 9, .tid = 9, .count = 1 },
        { .stack_index = -5, .pid = 9, .tid = 9, .count = 1 },
        { .t_sec = 1e300, .pid = 9, .tid = 9, .count = INT64_MAX },
        { .t_sec = -3, .pid = 9, .tid = 9, .count = -3 },
        { .t_sec = 2, .pid = 77, .tid = 77, .count = 1 },
    };
    struct named named;
    named_fill(&named, "name");
    named.report.stack_times.items = (struct report_stack_time *)(uintptr_t)times;
    named.report.stack_times.count = sizeof times / sizeof *times;
    named.report.timeline.items = (struct report_run *)(uintptr_t)runs;
    named.report.timeline.count = sizeof runs / sizeof *runs;
    named.report.elapsed_time_sec = -1e300;
    named.report.start_time_absolute = 1e300;
    named.points[0] = (struct point){ -1e300, 1e300 };
    check_json("speedscope", &named.report);
    check_json("gecko", &named.report);
    Perfetto__Trace *trace = exported_perfetto(&named.report);
    perfetto__trace__free_unpacked(trace, NULL);
    Pprof__Profile *profile = exported_pprof(&named.report);
    for (size_t i = 0; i < profile->n_sample; i++)
        for (size_t n = 0; n < profile->sample[i]->n_value; n++)
            assert_true(profile->sample[i]->value[n] >= 0);
    pprof__profile__free_unpacked(profile, NULL);
}

static void test_nothing_at_all(void **state)
{
    (void)state;
    const struct report report = { .elapsed_time_sec = 1 };
    size_t size = 0;
    AUTO_FREE char *text = exported_bytes("collapsed", &report, &size);
    assert_string_equal(text, "");
    check_json("speedscope", &report);
    check_json("gecko", &report);
    perfetto__trace__free_unpacked(exported_perfetto(&report), NULL);
    pprof__profile__free_unpacked(exported_pprof(&report), NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_made_code),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_nothing_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
