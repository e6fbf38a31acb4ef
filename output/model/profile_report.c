/* The report of a profile: the run as a whole, processes and threads; the other report_*.c do the
 * rest. */
#include "output/model/array.h"
#include "output/model/report_build.h"
#include "sampler/base/cleanup.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

DEFINE_CLEANUP(struct report *, report_free)

double report_seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static double megabytes(uint64_t bytes)
{
    return (double)bytes / 1048576;
}

struct wait_times report_waits(const uint64_t *ns)
{
    struct wait_times times;
    for (size_t i = 0; i < WAIT_KINDS; i++)
        times.seconds[i] = report_seconds(ns[i]);
    return times;
}

const char *report_text(struct report *report, const char *text)
{
    if (!text)
        return NULL;
    size_t size = strlen(text) + 1;
    char *copy = arena_take(&report->arena, size);
    return copy ? memcpy(copy, text, size) : NULL;
}

int report_add_note(struct report *report, const char *format, ...)
{
    char note[1024];
    va_list arguments;
    if (report->notes.count == NOTES_MAX)
        return 0;
    va_start(arguments, format);
    vsnprintf(note, sizeof note, format, arguments);
    va_end(arguments);
    const char *copy = report_text(report, note);
    if (!copy)
        return -ENOMEM;
    report->notes.items[report->notes.count++] = copy;
    return 0;
}

static int texts_copy(struct report *report, const char *const *texts, size_t count,
                      struct text_list *ret)
{
    const char **items = arena_take(&report->arena, (count + 1) * sizeof *items);
    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        items[i] = report_text(report, texts[i] ?: "");
        if (!items[i])
            return -ENOMEM;
    }
    *ret = (struct text_list){ items, count };
    return 0;
}

/* ---- the run as a whole ---- */

static int add_head(struct report *report, const struct profile *profile)
{
    const struct profile_settings *settings = &profile->settings;
    size_t count = 0;
    while (settings->args && settings->args[count])
        count++;
    report->profiler_name = "scalene-attach";
    report->profiler_version = report_text(report, settings->profiler_version ?: "");
    report->mode = settings->attached ? "attach" : "launch";
    report->program = report_text(report, profile->program ?: settings->program ?: "");
    report->filename = report_text(report, settings->program_path ?: "");
    report->entrypoint_dir = report_text(report, settings->entrypoint_dir ?: "");
    report->start_time_absolute = settings->start_time_absolute;
    report->start_time_perf = settings->start_time_perf;
    report->elapsed_time_sec =
        profile->has_sampling ? profile->sampling.elapsed_s : report_seconds(profile->last_ns);
    report->async_profile = settings->async;
    report->gpu_device = "";
    if (profile->process_index.count && profile->processes[0].main_thread != NOTHING)
        report->main_thread_id = (int64_t)profile->threads[profile->processes[0].main_thread].ident;
    report->notes.items = arena_take(&report->arena, NOTES_MAX * sizeof *report->notes.items);
    return report->notes.items ? texts_copy(report, settings->args, count, &report->args) : -ENOMEM;
}

static void add_totals(struct report *report, const struct profile *profile)
{
    report->totals = (struct report_totals){
        .elapsed_s = report->elapsed_time_sec,
        .cpu_python_s = report_seconds(profile->python_ns),
        .cpu_native_s = report_seconds(profile->native_ns),
        .cpu_kernel_s = report_seconds(profile->kernel_ns),
        .idle_s = report_seconds(profile->idle_ns),
        .wait_s = report_waits(profile->wait_ns),
    };
}

static void add_sampling(struct report *report, const struct profile *profile)
{
    const struct sampling_event *sampling = &profile->sampling;
    report->sampling = (struct report_sampling){
        .rate_hz = sampling->rate_hz,
        .longest_pause_us = sampling->longest_pause_us,
        .paused_s = sampling->paused_s,
        .profiler_cpu_s = sampling->profiler_cpu_s,
        .profiler_peak_rss_mb = megabytes(sampling->profiler_peak_rss_bytes),
        .samples = (int64_t)sampling->samples,
        .retried = (int64_t)sampling->retried,
        .dropped = (int64_t)sampling->dropped,
        .missed = (int64_t)sampling->missed,
        .pauses = (int64_t)sampling->pauses,
    };
}

/* ---- processes and threads ---- */

/* Seconds since profiling began, of which it may have been off for some. */
static double last_moment(const struct report *report, const struct profile *profile)
{
    uint64_t last_ns =
        profile->last_ns > profile->memory.last_ns ? profile->last_ns : profile->memory.last_ns;
    double last_s = report_seconds(last_ns);
    return last_s > report->elapsed_time_sec ? last_s : report->elapsed_time_sec;
}

static int process_write(struct report *report, const struct process_tally *process, double last_s,
                         struct report_process *ret)
{
    *ret = (struct report_process){
        .pid = process->pid,
        .ppid = process->ppid,
        .rank = process->rank,
        .exit_status = process->exit_status,
        .executable = report_text(report, process->executable),
        .python = report_text(report, process->python),
        .note = report_text(report, process->note),
        .start_s = process->start_s,
        .end_s = process->end_s > 0 ? process->end_s : fmax(process->start_s, last_s),
        .cpu_s = process_cpu_s(process),
        .peak_rss_mb = megabytes(process->peak_rss_bytes),
        .peak_footprint_mb = process->memory ? process->memory->peak_bytes / 1048576 : 0,
        .rss_mb = megabytes(process->footprint.rss_bytes),
        .pss_mb = megabytes(process->footprint.pss_bytes),
        .shared_mb = megabytes(process->footprint.shared_bytes),
        .private_mb = megabytes(process->footprint.private_bytes),
    };
    return texts_copy(report, process->argv.items, process->argv.count, &ret->argv);
}

static int add_processes(struct report *report, const struct profile *profile)
{
    size_t count = profile->process_index.count;
    struct report_process *items = arena_take(&report->arena, count * sizeof *items);
    double last_s = last_moment(report, profile);
    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        if (process_write(report, &profile->processes[i], last_s, &items[i]))
            return -ENOMEM;
    report->processes.items = items;
    report->processes.count = count;
    return 0;
}

/* A server may have had any number of threads; the list ends somewhere. */
static int add_threads(struct report *report, const struct profile *profile,
                       struct report_gaps *gaps)
{
    size_t all = profile->thread_index.count;
    size_t count = all < THREADS_MAX ? all : THREADS_MAX;
    struct report_thread *items = arena_take(&report->arena, count * sizeof *items);
    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const struct thread_tally *thread = &profile->threads[i];
        items[i] = (struct report_thread){
            .pid = profile->processes[thread->process].pid,
            .tid = thread->tid,
            .ident = (int64_t)thread->ident,
            .name = report_text(report, thread->name ?: ""),
            .cpu_python_s = report_seconds(thread->python_ns),
            .cpu_native_s = report_seconds(thread->native_ns),
            .cpu_kernel_s = report_seconds(thread->kernel_ns),
            .wait_s = report_waits(thread->wait_ns),
        };
    }
    report->threads.items = items;
    report->threads.count = count;
    gaps->threads = all - count + profile->dropped_threads;
    return 0;
}

int profile_report(struct profile *profile, struct report **ret)
{
    CLEANUP(report_freep) struct report *report = report_new();
    struct report_gaps gaps = { 0 };
    if (!report)
        return -ENOMEM;
    int error = add_head(report, profile);
    if (error)
        return error;
    add_totals(report, profile);
    add_sampling(report, profile);
    memory_settle(profile);
    error = report_add_memory(report, profile);
    if (!error)
        error = add_processes(report, profile);
    if (!error)
        error = add_threads(report, profile, &gaps);
    if (!error)
        error = report_add_files(report, profile, &gaps);
    if (!error)
        error = report_add_stacks(report, profile, &gaps);
    if (!error)
        error = report_add_notes(report, profile, &gaps);
    if (!error)
        *ret = TAKE_PTR(report);
    return error;
}
