/*
 * What each thread did, for the Firefox Profiler: a sample a run, weighted by its CPU and idle
 * time, a marker for each wait; what was allocated on which stack stands with the first thread.
 */
#include "output/export/gecko_profile.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/error.h"

#include <inttypes.h>

static double ms(uint64_t us)
{
    return (double)us / 1000;
}

/* ---- samples ---- */

struct samples {
    yyjson_mut_val *table, *stacks, *times, *weights, *cpu;
    uint64_t cpu_us; /* of the last sample: the profiler shows it at the next one */
    size_t count;
};

static void sample_add(struct gecko *gecko, struct samples *samples, uint32_t stack,
                       uint64_t time_us, uint64_t weight_us, uint64_t cpu_us)
{
    yyjson_mut_doc *doc = gecko->json.doc;
    if (stack)
        yyjson_mut_arr_add_uint(doc, samples->stacks, stack - 1);
    else
        yyjson_mut_arr_add_null(doc, samples->stacks);
    yyjson_mut_arr_add_real(doc, samples->times, ms(time_us));
    yyjson_mut_arr_add_real(doc, samples->weights, ms(weight_us));
    yyjson_mut_arr_add_uint(doc, samples->cpu, samples->cpu_us);
    samples->cpu_us = cpu_us;
    samples->count++;
}

static struct samples samples_begin(struct gecko *gecko, yyjson_mut_val *thread)
{
    struct json_document *json = &gecko->json;
    yyjson_mut_val *table = json_object(json, thread, "samples");
    yyjson_mut_obj_add_str(json->doc, table, "weightType", "tracing-ms");
    return (struct samples){
        .table = table,
        .stacks = json_list(json, table, "stack"),
        .times = json_list(json, table, "time"),
        .weights = json_list(json, table, "weight"),
        .cpu = json_list(json, table, "threadCPUDelta"),
    };
}

/* One without a stack ends the last run. What happened nobody knows when, comes then. */
static void samples_write(struct gecko *gecko, yyjson_mut_val *object,
                          const struct ledger_thread *thread)
{
    const struct ledger *ledger = &gecko->ledger;
    struct samples samples = samples_begin(gecko, object);
    for (size_t i = 0; i < thread->run_count; i++) {
        const struct ledger_run *run = &ledger->runs[thread->first_run + i];
        const struct ledger_entry *entry = &ledger->entries[run->entry];
        sample_add(gecko, &samples, gecko->stacks[entry->stack], run->start_us,
                   ledger_part(ledger, run, ledger_base_us(entry)),
                   ledger_part(ledger, run, ledger_cpu_us(entry)));
    }
    for (size_t i = 0; i < thread->entry_count; i++) {
        const struct ledger_entry *entry = &ledger->entries[thread->first_entry + i];
        if (!entry->run_samples)
            sample_add(gecko, &samples, gecko->stacks[entry->stack], thread->end_us,
                       ledger_base_us(entry), ledger_cpu_us(entry));
    }
    if (samples.count)
        sample_add(gecko, &samples, 0, thread->end_us, 0, 0);
    yyjson_mut_obj_add_uint(gecko->json.doc, samples.table, "length", samples.count);
}

/* ---- markers ---- */

struct markers {
    yyjson_mut_val *data, *names, *starts, *ends, *phases, *categories;
    size_t count;
};

static void marker_add(struct gecko *gecko, struct markers *markers, enum ledger_state state,
                       uint64_t start_us, uint64_t end_us, uint64_t waited_us)
{
    enum { IS_INTERVAL = 1 };
    yyjson_mut_doc *doc = gecko->json.doc;
    if (!waited_us)
        return;
    yyjson_mut_val *data = json_item(&gecko->json, markers->data);
    yyjson_mut_obj_add_str(doc, data, "type", "wait");
    yyjson_mut_obj_add_str(doc, data, "what", ledger_state_name(state));
    yyjson_mut_obj_add_real(doc, data, "waited", ms(waited_us));
    yyjson_mut_arr_add_int(doc, markers->names, gecko_text(gecko, ledger_state_name(state)));
    yyjson_mut_arr_add_real(doc, markers->starts, ms(start_us));
    yyjson_mut_arr_add_real(doc, markers->ends, ms(end_us));
    yyjson_mut_arr_add_int(doc, markers->phases, IS_INTERVAL);
    yyjson_mut_arr_add_int(doc, markers->categories, CATEGORY_WAITING);
    markers->count++;
}

static void markers_fill(struct gecko *gecko, struct markers *markers,
                         const struct ledger_thread *thread)
{
    const struct ledger *ledger = &gecko->ledger;
    for (size_t i = 0; i < thread->run_count; i++) {
        const struct ledger_run *run = &ledger->runs[thread->first_run + i];
        const struct ledger_entry *entry = &ledger->entries[run->entry];
        for (size_t state = STATE_WAIT; state < STATE_COUNT; state++)
            marker_add(gecko, markers, state, run->start_us, run->end_us,
                       ledger_part(ledger, run, entry->us[state]));
    }
    for (size_t i = 0; i < thread->entry_count; i++) {
        const struct ledger_entry *entry = &ledger->entries[thread->first_entry + i];
        for (size_t state = STATE_WAIT; state < STATE_COUNT && !entry->run_samples; state++)
            marker_add(gecko, markers, state, thread->end_us, thread->end_us, entry->us[state]);
    }
}

static void markers_write(struct gecko *gecko, yyjson_mut_val *object,
                          const struct ledger_thread *thread)
{
    struct json_document *json = &gecko->json;
    yyjson_mut_val *table = json_object(json, object, "markers");
    struct markers markers = {
        .data = json_list(json, table, "data"),
        .names = json_list(json, table, "name"),
        .starts = json_list(json, table, "startTime"),
        .ends = json_list(json, table, "endTime"),
        .phases = json_list(json, table, "phase"),
        .categories = json_list(json, table, "category"),
    };
    markers_fill(gecko, &markers, thread);
    yyjson_mut_obj_add_uint(json->doc, table, "length", markers.count);
}

/* ---- memory ---- */

struct allocations {
    struct json_document *json;
    yyjson_mut_val *times, *weights, *stacks;
    yyjson_mut_val *addresses, *threads; /* NULL: what was freed is not told */
    size_t count;
};

/* Nobody knows when; what is freed has the address of what was allocated. */
static void allocation_add(struct allocations *allocations, uint32_t stack, int64_t bytes,
                           size_t address)
{
    yyjson_mut_doc *doc = allocations->json->doc;
    yyjson_mut_arr_add_int(doc, allocations->times, 0);
    yyjson_mut_arr_add_int(doc, allocations->weights, bytes);
    if (allocations->addresses) {
        yyjson_mut_arr_add_uint(doc, allocations->addresses, address);
        yyjson_mut_arr_add_uint(doc, allocations->threads, 0);
    }
    if (stack)
        yyjson_mut_arr_add_uint(doc, allocations->stacks, stack - 1);
    else
        yyjson_mut_arr_add_null(doc, allocations->stacks);
    allocations->count++;
}

/* Of each stack what was freed again, and what is live: only the former is taken back. */
static void allocations_write(struct gecko *gecko, yyjson_mut_val *object,
                              const struct report *report)
{
    struct json_document *json = &gecko->json;
    bool told = report->memory_stacks_live_mb.count > 0;
    if (!report->memory_stacks.count)
        return;
    yyjson_mut_val *table = json_object(json, object, "nativeAllocations");
    struct allocations allocations = {
        .json = json,
        .times = json_list(json, table, "time"),
        .weights = json_list(json, table, "weight"),
        .stacks = json_list(json, table, "stack"),
        .addresses = told ? json_list(json, table, "memoryAddress") : NULL,
        .threads = told ? json_list(json, table, "threadId") : NULL,
    };
    for (size_t i = 0; i < report->memory_stacks.count; i++) {
        int64_t bytes = (int64_t)ledger_bytes(report->memory_stacks.items[i].megabytes);
        int64_t live = (int64_t)ledger_bytes(report_stack_live_mb(report, i));
        uint32_t stack = gecko->memory_stacks[i];
        if (live)
            allocation_add(&allocations, stack, live, 2 * i + 1);
        if (live == bytes && bytes)
            continue;
        allocation_add(&allocations, stack, bytes - live, 2 * i + 2);
        if (told)
            allocation_add(&allocations, stack, live - bytes, 2 * i + 2);
    }
    yyjson_mut_obj_add_str(json->doc, table, "weightType", "bytes");
    yyjson_mut_obj_add_uint(json->doc, table, "length", allocations.count);
}

/* ---- threads ---- */

static void text_write(struct gecko *gecko, yyjson_mut_val *object, const char *key, char *text)
{
    const char *kept = text ? frame_table_text(&gecko->frames, text) : NULL;
    gecko->json.is_short |= !kept;
    yyjson_mut_obj_add_str(gecko->json.doc, object, key, kept ?: "");
}

/* Processes are told apart by text, because some have the same number. */
static void head_write(struct gecko *gecko, yyjson_mut_val *object,
                       const struct ledger_thread *thread)
{
    struct json_document *json = &gecko->json;
    const struct report_process *process = thread->process;
    char pid[32];
    AUTO_FREE char *command = ledger_command(thread);
    snprintf(pid, sizeof pid, "%" PRId64, thread->pid < 0 ? 0 : thread->pid);
    yyjson_mut_obj_add_str(json->doc, object, "processType", "default");
    text_write(gecko, object, "processName", command);
    yyjson_mut_obj_add_real(json->doc, object, "processStartupTime",
                            process ? ms(ledger_millionths(process->start_s)) : 0);
    yyjson_mut_obj_add_null(json->doc, object, "processShutdownTime");
    yyjson_mut_obj_add_real(json->doc, object, "registerTime", 0);
    yyjson_mut_obj_add_null(json->doc, object, "unregisterTime");
    json_list(json, object, "pausedRanges");
    text_write(gecko, object, "name",
               thread->pid < 0 ? "all threads" : (char *)(uintptr_t)thread->name);
    yyjson_mut_obj_add_bool(json->doc, object, "isMainThread", thread->is_first);
    yyjson_mut_obj_add_strcpy(json->doc, object, "pid", pid);
    yyjson_mut_obj_add_int(json->doc, object, "tid", thread->tid < 0 ? 0 : thread->tid);
}

/* Without an entry nothing is known of it but that it was there. */
size_t gecko_thread_next(const struct gecko *gecko, size_t from)
{
    const struct ledger *ledger = &gecko->ledger;
    for (size_t i = from; i < ledger->thread_index.count; i++)
        if (ledger->threads[i].entry_count)
            return i;
    return from ? ledger->thread_index.count : 0;
}

void gecko_threads_write(struct gecko *gecko, const struct report *report)
{
    yyjson_mut_val *threads = json_list(&gecko->json, gecko->json.root, "threads");
    size_t first = gecko_thread_next(gecko, 0);
    for (size_t i = first; i < gecko->ledger.thread_index.count;
         i = gecko_thread_next(gecko, i + 1)) {
        const struct ledger_thread *thread = &gecko->ledger.threads[i];
        yyjson_mut_val *object = json_item(&gecko->json, threads);
        head_write(gecko, object, thread);
        samples_write(gecko, object, thread);
        markers_write(gecko, object, thread);
        if (i == first)
            allocations_write(gecko, object, report);
    }
}
