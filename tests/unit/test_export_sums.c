/* No format loses anything of a stack: what it holds adds up to what the report tells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <yyjson.h>

#include "output/export/ledger.h"
#include "tests/unit/exported_messages.h"

/* Whole: hits, microseconds, bytes. What a format cannot tell is the report's own. */
struct sums {
    uint64_t hits, cpu_us, idle_us, wait_us, bytes, live;
};

static struct sums report_sums(const struct report *report)
{
    struct sums sums = { 0 };
    for (size_t i = 0; i < report->stack_times.count; i++) {
        const struct report_stack_time *time = &report->stack_times.items[i];
        sums.hits += (uint64_t)time->hits;
        sums.cpu_us += ledger_millionths(time->cpu_python_s) +
                       ledger_millionths(time->cpu_native_s) +
                       ledger_millionths(time->cpu_kernel_s);
        sums.idle_us += ledger_millionths(time->idle_s);
        for (size_t kind = 0; kind < WAIT_KINDS; kind++)
            sums.wait_us += ledger_millionths(time->wait_s.seconds[kind]);
    }
    for (size_t i = 0; i < report->memory_stacks.count; i++)
        sums.bytes += ledger_bytes(report->memory_stacks.items[i].megabytes);
    for (size_t i = 0; i < report->memory_stacks_live_mb.count; i++)
        sums.live += ledger_bytes(report->memory_stacks_live_mb.items[i]);
    return sums;
}

static void assert_sums(const struct sums *got, const struct sums *want)
{
    assert_int_equal(got->hits, want->hits);
    assert_int_equal(got->cpu_us, want->cpu_us);
    assert_int_equal(got->idle_us, want->idle_us);
    assert_int_equal(got->wait_us, want->wait_us);
    assert_int_equal(got->bytes, want->bytes);
    assert_int_equal(got->live, want->live);
}

/* ---- text ---- */

static struct sums collapsed_sums(const struct report *report, const struct sums *told)
{
    struct sums sums = *told;
    size_t size = 0;
    AUTO_FREE char *text = exported_bytes("collapsed", report, &size);
    sums.hits = 0;
    for (const char *at = text; *at; at = strchr(at, '\n') + 1) {
        const char *end = strchr(at, '\n');
        while (end[-1] != ' ')
            end--;
        sums.hits += strtoull(end, NULL, 10);
    }
    return sums;
}

/* ---- JSON ---- */

static double list_sum(yyjson_val *list)
{
    size_t index, count;
    yyjson_val *item;
    double sum = 0;
    yyjson_arr_foreach(list, index, count, item) sum += yyjson_get_num(item);
    return sum;
}

static yyjson_doc *exported_json(const char *format, const struct report *report)
{
    size_t size = 0;
    AUTO_FREE char *text = exported_bytes(format, report, &size);
    yyjson_doc *doc = yyjson_read(text, size, YYJSON_READ_NOFLAG);
    assert_non_null(doc);
    return doc;
}

enum speedscope_kind { KIND_CPU, KIND_WAITING, KIND_WALL, KIND_ALLOCATED, KIND_LIVE, KIND_COUNT };

static enum speedscope_kind speedscope_kind_of(yyjson_val *profile)
{
    static const char *const names[KIND_COUNT] = { ", CPU", ", waiting", ", wall",
                                                   "allocated memory", "live memory" };
    const char *name = yyjson_get_str(yyjson_obj_get(profile, "name"));
    const char *unit = yyjson_get_str(yyjson_obj_get(profile, "unit"));
    size_t kind = 0;
    while (kind < KIND_COUNT && (strlen(name) < strlen(names[kind]) ||
                                 strcmp(name + strlen(name) - strlen(names[kind]), names[kind])))
        kind++;
    assert_true(kind < KIND_COUNT);
    assert_string_equal(unit, kind < KIND_ALLOCATED ? "seconds" : "bytes");
    return (enum speedscope_kind)kind;
}

/* Idle time is not told apart from other waiting there. */
static struct sums speedscope_sums(const struct report *report, const struct sums *told)
{
    struct sums sums = { .hits = told->hits, .idle_us = told->idle_us };
    yyjson_doc *doc = exported_json("speedscope", report);
    size_t index, count;
    yyjson_val *profile;
    double kinds[KIND_COUNT] = { 0 };
    yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(doc), "profiles"), index, count, profile)
    {
        double sum = list_sum(yyjson_obj_get(profile, "weights"));
        assert_true(sum > 0);
        assert_float_equal(yyjson_get_num(yyjson_obj_get(profile, "endValue")), sum, 1e-7);
        kinds[speedscope_kind_of(profile)] += sum;
    }
    yyjson_doc_free(doc);
    sums.cpu_us = ledger_millionths(kinds[KIND_CPU]);
    sums.wait_us = ledger_millionths(kinds[KIND_WAITING]);
    sums.bytes = (uint64_t)kinds[KIND_ALLOCATED];
    sums.live = (uint64_t)kinds[KIND_LIVE];
    assert_int_equal(ledger_millionths(kinds[KIND_WALL]), sums.cpu_us + sums.wait_us);
    return sums;
}

/* What is freed is taken off again. */
static void allocations_add(yyjson_val *weights, struct sums *sums)
{
    size_t index, count;
    yyjson_val *weight;
    yyjson_arr_foreach(weights, index, count, weight)
    {
        int64_t bytes = yyjson_get_sint(weight);
        sums->bytes += bytes > 0 ? (uint64_t)bytes : 0;
        sums->live += (uint64_t)bytes;
    }
}

static struct sums gecko_sums(const struct report *report, const struct sums *told)
{
    struct sums sums = *told;
    yyjson_doc *doc = exported_json("gecko", report);
    size_t index, count, n, marker_count;
    yyjson_val *thread, *marker;
    double base = 0, cpu = 0, wait = 0;
    sums.bytes = sums.live = 0;
    yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(doc), "threads"), index, count, thread)
    {
        yyjson_val *samples = yyjson_obj_get(thread, "samples");
        base += list_sum(yyjson_obj_get(samples, "weight"));
        cpu += list_sum(yyjson_obj_get(samples, "threadCPUDelta"));
        allocations_add(yyjson_obj_get(yyjson_obj_get(thread, "nativeAllocations"), "weight"),
                        &sums);
        yyjson_arr_foreach(yyjson_obj_get(yyjson_obj_get(thread, "markers"), "data"), n,
                           marker_count, marker) wait +=
            yyjson_get_num(yyjson_obj_get(marker, "waited"));
    }
    yyjson_doc_free(doc);
    sums.cpu_us = (uint64_t)cpu;
    sums.idle_us = ledger_millionths(base / 1000) - sums.cpu_us;
    sums.wait_us = ledger_millionths(wait / 1000);
    return sums;
}

/* ---- messages ---- */

static struct sums pprof_sums(const struct report *report, const struct sums *told)
{
    Pprof__Profile *profile = exported_pprof(report);
    struct sums sums = { 0 };
    uint64_t wall = 0;
    (void)told;
    for (size_t i = 0; i < profile->n_sample; i++) {
        const Pprof__Sample *sample = profile->sample[i];
        assert_int_equal(sample->n_value, profile->n_kind);
        sums.hits += (uint64_t)sample->value[0];
        sums.cpu_us += (uint64_t)sample->value[1] / 1000;
        sums.idle_us += (uint64_t)sample->value[2] / 1000;
        sums.wait_us += (uint64_t)sample->value[3] / 1000;
        wall += (uint64_t)sample->value[4] / 1000;
        sums.bytes += sample->n_value > 5 ? (uint64_t)sample->value[5] : 0;
        sums.live += sample->n_value > 6 ? (uint64_t)sample->value[6] : 0;
    }
    assert_int_equal(wall, sums.cpu_us + sums.wait_us);
    pprof__profile__free_unpacked(profile, NULL);
    return sums;
}

static const char *detail_name(const Perfetto__Trace *trace, uint64_t iid)
{
    for (size_t i = 0; i < trace->n_packet; i++) {
        const Perfetto__InternedData *data = trace->packet[i]->interned_data;
        if (data && data->n_debug_annotation_names && data->debug_annotation_names[0]->iid == iid)
            return data->debug_annotation_names[0]->name;
    }
    fail_msg("detail %d has no name", (int)iid);
    return "";
}

static void detail_add(struct sums *sums, const char *name, uint64_t value)
{
    static const char *const cpu[] = { "python_us", "native_us", "kernel_us" };
    for (size_t i = 0; i < 3; i++)
        if (strcmp(name, cpu[i]) == 0) {
            sums->cpu_us += value;
            return;
        }
    if (strcmp(name, "idle_us") == 0)
        sums->idle_us += value;
    else if (strcmp(name, "samples") != 0)
        sums->wait_us += value;
}

static struct sums perfetto_sums(const struct report *report, const struct sums *told)
{
    Perfetto__Trace *trace = exported_perfetto(report);
    struct sums sums = { .hits = told->hits };
    for (size_t i = 0; i < trace->n_packet; i++) {
        const Perfetto__TrackEvent *event = trace->packet[i]->track_event;
        const Perfetto__ProfilePacket *memory = trace->packet[i]->profile_packet;
        for (size_t n = 0; event && n < event->n_debug_annotations; n++)
            detail_add(&sums, detail_name(trace, event->debug_annotations[n]->name_iid),
                       event->debug_annotations[n]->uint_value);
        if (memory && memory->n_process_dumps) {
            const Perfetto__HeapSample *sample = memory->process_dumps[0]->samples[0];
            sums.bytes += sample->self_allocated;
            sums.live += sample->self_allocated - sample->self_freed;
        }
    }
    perfetto__trace__free_unpacked(trace, NULL);
    return sums;
}

/* A row a format; one without would be a format whose sums nobody looks at. */
static const struct {
    const char *format;
    struct sums (*sums)(const struct report *report, const struct sums *told);
} rows[] = {
    { "collapsed", collapsed_sums },   { "gecko", gecko_sums },
    { "perfetto", perfetto_sums },     { "pprof", pprof_sums },
    { "speedscope", speedscope_sums },
};

static void check_stream(const char *stream)
{
    AUTO_REPORT struct report *report = exported_report(stream);
    const struct sums want = report_sums(report);
    assert_true(want.hits > 0 && want.cpu_us > 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sums got = rows[i].sums(report, &want);
        print_message("%s of %s\n", rows[i].format, stream);
        assert_sums(&got, &want);
    }
}

static void test_streams(void **state)
{
    (void)state;
    check_stream("shop");
    check_stream("memory");
    check_stream("marked");
}

#define FORMAT(name, ...) +1
enum {
    EXPORTS = 0
#include "output/export/formats.def"
};
#undef FORMAT

static void test_every_export_has_sums(void **state)
{
    (void)state;
    assert_int_equal(sizeof rows / sizeof *rows, EXPORTS);
    for (size_t i = 0; i < EXPORTS; i++)
        assert_non_null(format_find(rows[i].format));
}

/* Another profiler's tells of hits alone: they share the time, in every format that knows time. */
static void test_hits_alone(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report = exported_report("shop");
    uint64_t all = ledger_millionths(report_base_s(report));
    struct ledger ledger;
    report->stack_times.count = 0;
    assert_int_equal(ledger_init(&ledger, report), 0);
    uint64_t us = 0, hits = 0, listed = 0;
    for (size_t i = 0; i < ledger.entry_count; i++) {
        us += ledger_base_us(&ledger.entries[i]);
        hits += ledger.entries[i].hits;
    }
    for (size_t i = 0; i < report->combined_stacks.count; i++)
        listed += (uint64_t)report->combined_stacks.items[i].hits;
    assert_int_equal(hits, listed);
    assert_in_range(us, all - ledger.entry_count, all + ledger.entry_count);
    ledger_done(&ledger);
    const struct sums told = { .hits = listed };
    assert_int_equal(collapsed_sums(report, &told).hits, listed);
    assert_int_equal(pprof_sums(report, &told).cpu_us, us);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_every_export_has_sums),
        cmocka_unit_test(test_hits_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
