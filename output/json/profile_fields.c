#include "output/json/profile_fields.h"

#include "output/model/columns.h"

#include <stdlib.h>
#include <string.h>

#define VALUE(type, key, value)                                                                    \
    {                                                                                              \
#key, FIELD_VALUE, VALUE_##value, offsetof(type, key), NULL, NULL                          \
    }
#define OPTIONAL(type, key)                                                                        \
    {                                                                                              \
#key, FIELD_OPTIONAL, VALUE_COUNT, offsetof(type, key), NULL, NULL                         \
    }
#define NESTED(type, key, kind, record)                                                            \
    {                                                                                              \
#key, FIELD_##kind, VALUE_COUNT, offsetof(type, key), &(record), NULL                      \
    }
#define RECORD(name, type, shape)                                                                  \
    static const struct record name = { name##_fields,                                             \
                                        sizeof name##_fields / sizeof(struct field), sizeof(type), \
                                        SHAPE_##shape, NULL }

/* ---- files ---- */

static const struct field line_fields[] = {
#define COLUMN(key, kind, group, width, title, help)                                               \
    { #key, FIELD_VALUE, VALUE_##kind, offsetof(struct line_stats, key), NULL, group },
#include "output/model/columns.def"
#undef COLUMN
};
RECORD(line, struct line_stats, OBJECT);

static const struct record function = {
    line_fields, sizeof line_fields / sizeof *line_fields, sizeof(struct line_stats), SHAPE_OBJECT,
    "region",
};

static const struct field leak_fields[] = {
    VALUE(struct report_leak, likelihood, NUMBER),
    VALUE(struct report_leak, velocity_mb_s, RATE),
    VALUE(struct report_leak, live_mb, MEGABYTES),
    VALUE(struct report_leak, stack, TEXTS),
};
RECORD(leak, struct report_leak, OBJECT);

static const struct field file_fields[] = {
    VALUE(struct report_file, percent_cpu_time, PERCENT),
    NESTED(struct report_file, lines, RECORDS, line),
    NESTED(struct report_file, functions, RECORDS, function),
    NESTED(struct report_file, leaks, MAP, leak),
    VALUE(struct report_file, imports, TEXTS),
};

const struct record file_record = {
    file_fields, sizeof file_fields / sizeof *file_fields, sizeof(struct report_file), SHAPE_OBJECT,
    NULL,
};

/* ---- stacks ---- */

static const struct field shares_fields[] = {
    VALUE(struct report_path, count, COUNT),
    VALUE(struct report_path, python_time, FRACTION),
    VALUE(struct report_path, c_time, FRACTION),
    VALUE(struct report_path, cpu_samples, FRACTION),
};
RECORD(shares, struct report_path, OBJECT);

static const struct field path_fields[] = {
    VALUE(struct report_path, frames, TEXTS),
    { "", FIELD_RECORD, VALUE_COUNT, 0, &shares, NULL },
};
RECORD(path, struct report_path, LIST);

static const struct field frame_fields[] = {
    VALUE(struct report_frame, kind, TEXT),
    VALUE(struct report_frame, display_name, TEXT),
    VALUE(struct report_frame, filename_or_module, TEXT),
    OPTIONAL(struct report_frame, line),
    OPTIONAL(struct report_frame, ip),
    OPTIONAL(struct report_frame, offset),
};
RECORD(frame, struct report_frame, OBJECT);

static const struct field stack_fields[] = {
    NESTED(struct report_stack, frames, POINTERS, frame),
    VALUE(struct report_stack, hits, COUNT),
};
RECORD(stack, struct report_stack, LIST);

static const struct field memory_stack_fields[] = {
    NESTED(struct report_stack, frames, POINTERS, frame),
    VALUE(struct report_stack, megabytes, MEGABYTES),
};
RECORD(memory_stack, struct report_stack, LIST);

static const struct field run_fields[] = {
    VALUE(struct report_run, t_sec, SECONDS), VALUE(struct report_run, stack_index, COUNT),
    VALUE(struct report_run, count, COUNT),   VALUE(struct report_run, thread_id, COUNT),
    VALUE(struct report_run, pid, COUNT),     OPTIONAL(struct report_run, tid),
};
RECORD(run, struct report_run, OBJECT);

static const struct field stack_time_fields[] = {
    VALUE(struct report_stack_time, stack_index, COUNT),
    OPTIONAL(struct report_stack_time, pid),
    OPTIONAL(struct report_stack_time, tid),
    VALUE(struct report_stack_time, samples, COUNT),
    VALUE(struct report_stack_time, hits, COUNT),
    VALUE(struct report_stack_time, cpu_python_s, SECONDS),
    VALUE(struct report_stack_time, cpu_native_s, SECONDS),
    VALUE(struct report_stack_time, cpu_kernel_s, SECONDS),
    VALUE(struct report_stack_time, idle_s, SECONDS),
    VALUE(struct report_stack_time, wait_s, WAITS),
};
RECORD(stack_time, struct report_stack_time, OBJECT);

/* ---- the run as a whole ---- */

static const struct field process_fields[] = {
    VALUE(struct report_process, pid, COUNT),
    VALUE(struct report_process, ppid, COUNT),
    OPTIONAL(struct report_process, rank),
    VALUE(struct report_process, argv, TEXTS),
    VALUE(struct report_process, executable, TEXT),
    VALUE(struct report_process, python, TEXT),
    VALUE(struct report_process, start_s, SECONDS),
    VALUE(struct report_process, end_s, SECONDS),
    VALUE(struct report_process, cpu_s, SECONDS),
    VALUE(struct report_process, peak_rss_mb, MEGABYTES),
    VALUE(struct report_process, peak_footprint_mb, MEGABYTES),
    VALUE(struct report_process, rss_mb, MEGABYTES),
    VALUE(struct report_process, pss_mb, MEGABYTES),
    VALUE(struct report_process, shared_mb, MEGABYTES),
    VALUE(struct report_process, private_mb, MEGABYTES),
    OPTIONAL(struct report_process, exit_status),
    VALUE(struct report_process, note, TEXT),
};
RECORD(process, struct report_process, OBJECT);

static const struct field thread_fields[] = {
    VALUE(struct report_thread, pid, COUNT),
    VALUE(struct report_thread, tid, COUNT),
    VALUE(struct report_thread, ident, COUNT),
    VALUE(struct report_thread, name, TEXT),
    VALUE(struct report_thread, cpu_python_s, SECONDS),
    VALUE(struct report_thread, cpu_native_s, SECONDS),
    VALUE(struct report_thread, cpu_kernel_s, SECONDS),
    VALUE(struct report_thread, wait_s, WAITS),
};
RECORD(thread, struct report_thread, OBJECT);

static const struct field sampling_fields[] = {
    VALUE(struct report_sampling, rate_hz, NUMBER),
    VALUE(struct report_sampling, samples, COUNT),
    VALUE(struct report_sampling, retried, COUNT),
    VALUE(struct report_sampling, dropped, COUNT),
    VALUE(struct report_sampling, missed, COUNT),
    VALUE(struct report_sampling, pauses, COUNT),
    VALUE(struct report_sampling, longest_pause_us, NUMBER),
    VALUE(struct report_sampling, paused_s, SECONDS),
    VALUE(struct report_sampling, profiler_cpu_s, SECONDS),
    VALUE(struct report_sampling, profiler_peak_rss_mb, MEGABYTES),
    VALUE(struct report_sampling, allocation_window, COUNT),
    VALUE(struct report_sampling, shim_records, COUNT),
    VALUE(struct report_sampling, shim_lost, COUNT),
};
RECORD(sampling, struct report_sampling, OBJECT);

static const struct field totals_fields[] = {
    VALUE(struct report_totals, elapsed_s, SECONDS),
    VALUE(struct report_totals, cpu_python_s, SECONDS),
    VALUE(struct report_totals, cpu_native_s, SECONDS),
    VALUE(struct report_totals, cpu_kernel_s, SECONDS),
    VALUE(struct report_totals, idle_s, SECONDS),
    VALUE(struct report_totals, wait_s, WAITS),
    VALUE(struct report_totals, allocated_mb, MEGABYTES),
    VALUE(struct report_totals, freed_mb, MEGABYTES),
    VALUE(struct report_totals, live_mb, MEGABYTES),
    VALUE(struct report_totals, copied_mb, MEGABYTES),
};
RECORD(totals, struct report_totals, OBJECT);

static const struct field profiler_fields[] = {
    { "name", FIELD_VALUE, VALUE_TEXT, offsetof(struct report, profiler_name), NULL, NULL },
    { "version", FIELD_VALUE, VALUE_TEXT, offsetof(struct report, profiler_version), NULL, NULL },
};
RECORD(profiler, struct report, OBJECT);

static const struct field profile_fields[] = {
    { "profiler", FIELD_RECORD, VALUE_COUNT, 0, &profiler, NULL },
    { "columns", FIELD_COLUMNS, VALUE_COUNT, 0, NULL, NULL },
    VALUE(struct report, mode, TEXT),
    VALUE(struct report, program, TEXT),
    VALUE(struct report, filename, TEXT),
    VALUE(struct report, entrypoint_dir, TEXT),
    VALUE(struct report, args, TEXTS),
    VALUE(struct report, start_time_absolute, SECONDS),
    VALUE(struct report, start_time_perf, SECONDS),
    VALUE(struct report, elapsed_time_sec, SECONDS),
    VALUE(struct report, memory, FLAG),
    VALUE(struct report, gpu, FLAG),
    VALUE(struct report, gpu_device, TEXT),
    VALUE(struct report, async_profile, FLAG),
    VALUE(struct report, alloc_samples, COUNT),
    VALUE(struct report, max_footprint_mb, MEGABYTES),
    VALUE(struct report, max_footprint_python_fraction, FRACTION),
    VALUE(struct report, max_footprint_fname, TEXT),
    OPTIONAL(struct report, max_footprint_lineno),
    VALUE(struct report, native_allocations_mb, MEGABYTES),
    VALUE(struct report, growth_rate, PERCENT),
    VALUE(struct report, samples, SPARK),
    NESTED(struct report, stacks, RECORDS, path),
    NESTED(struct report, combined_stacks, RECORDS, stack),
    { "combined_stacks_timeline", FIELD_RECORDS, VALUE_COUNT, offsetof(struct report, timeline),
      &run, NULL },
    NESTED(struct report, stack_times, RECORDS, stack_time),
    NESTED(struct report, memory_stacks, RECORDS, memory_stack),
    VALUE(struct report, memory_stacks_live_mb, MOMENTS),
    OPTIONAL(struct report, main_thread_id),
    NESTED(struct report, files, MAP, file_record),
    NESTED(struct report, processes, RECORDS, process),
    NESTED(struct report, threads, RECORDS, thread),
    NESTED(struct report, sampling, RECORD, sampling),
    NESTED(struct report, totals, RECORD, totals),
    VALUE(struct report, notes, TEXTS),
};

const struct record profile_record = {
    profile_fields,
    sizeof profile_fields / sizeof *profile_fields,
    sizeof(struct report),
    SHAPE_OBJECT,
    NULL,
};

static int key_is_later(const void *a, const void *b)
{
    const struct field *const *left = a, *const *right = b;
    return strcmp((*left)->key, (*right)->key);
}

void fields_order(const struct record *record, struct ordered *ret)
{
    ret->record = record;
    ret->count = 0;
    for (size_t i = 0; i < record->count; i++) {
        const struct field *field = &record->fields[i];
        if (!(record->without && field->group && strcmp(field->group, record->without) == 0))
            ret->fields[ret->count++] = field;
    }
    if (record->shape == SHAPE_OBJECT)
        qsort(ret->fields, ret->count, sizeof *ret->fields, key_is_later);
    for (size_t i = 0; i < ret->count; i++)
        ret->key_lengths[i] = ret->fields[i]->key ? strlen(ret->fields[i]->key) : 0;
}
