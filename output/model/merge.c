#include "output/model/merge_build.h"

#include "output/model/array.h"
#include "sampler/base/cleanup.h"

#include <math.h>
#include <string.h>

DEFINE_CLEANUP(struct report *, report_free)

/* ---- pids: those of other runs and hosts may be equal ---- */

static struct key pid_key(size_t part, int64_t pid)
{
    return (struct key){ { part + 1, (uint64_t)pid, 0 } };
}

int64_t merge_pid(const struct merge *merge, size_t part, int64_t pid)
{
    int64_t number = key_index_find(&merge->pids, pid_key(part, pid));
    return number < 0 ? pid : merge->new_pids[number];
}

static int pid_take(struct merge *merge, struct key_index *taken, size_t part, int64_t pid)
{
    const struct key key = pid_key(part, pid);
    size_t number = merge->pids.count;
    if (key_index_find(&merge->pids, key) >= 0)
        return 0;
    if (ARRAY_GROW(merge->new_pids, number, merge->new_pid_room) ||
        key_index_add(&merge->pids, key) < 0)
        return -ENOMEM;
    while (key_index_find(taken, pid_key(0, pid)) >= 0) {
        pid = merge_count(pid, MERGE_PID_STEP);
        merge->has_new_pids = true;
        if (pid == INT64_MAX)
            break;
    }
    merge->new_pids[number] = pid;
    return key_index_add(taken, pid_key(0, pid)) < 0 ? -ENOMEM : 0;
}

static int pids_take(struct merge *merge)
{
    CLEANUP(key_index_done) struct key_index taken = { 0 };
    int error = 0;
    for (size_t i = 0; i < merge->count; i++) {
        const struct report *part = merge->parts[i].report;
        for (size_t n = 0; n < part->processes.count && !error; n++)
            error = pid_take(merge, &taken, i, part->processes.items[n].pid);
    }
    return error;
}

/* ---- processes and threads ---- */

static int process_copy(struct merge *merge, size_t part, const struct report_process *from,
                        struct report_process *to)
{
    *to = *from;
    to->pid = merge_pid(merge, part, from->pid);
    to->ppid = merge_pid(merge, part, from->ppid);
    to->executable = report_text(merge->report, from->executable);
    to->python = report_text(merge->report, from->python);
    to->note = report_text(merge->report, from->note);
    if (!to->executable != !from->executable || !to->python != !from->python ||
        !to->note != !from->note)
        return -ENOMEM;
    return merge_texts(merge->report, &from->argv, &to->argv);
}

static int processes_merge(struct merge *merge)
{
    struct report *report = merge->report;
    size_t count = 0, threads = 0;
    for (size_t i = 0; i < merge->count; i++) {
        count += merge->parts[i].report->processes.count;
        threads += merge->parts[i].report->threads.count;
    }
    report->processes.items = arena_take(&report->arena, count * sizeof *report->processes.items);
    report->threads.items = arena_take(&report->arena, threads * sizeof *report->threads.items);
    if (!report->processes.items || !report->threads.items)
        return -ENOMEM;
    for (size_t i = 0; i < merge->count; i++) {
        const struct report *part = merge->parts[i].report;
        for (size_t n = 0; n < part->processes.count; n++)
            if (process_copy(merge, i, &part->processes.items[n],
                             &report->processes.items[report->processes.count++]))
                return -ENOMEM;
        for (size_t n = 0; n < part->threads.count; n++) {
            struct report_thread *thread = &report->threads.items[report->threads.count++];
            *thread = part->threads.items[n];
            thread->pid = merge_pid(merge, i, thread->pid);
            thread->name = report_text(report, thread->name ?: "");
            if (!thread->name)
                return -ENOMEM;
        }
    }
    return 0;
}

/* ---- the run as a whole ---- */

static void totals_add(struct report_totals *to, const struct report_totals *from)
{
    to->elapsed_s += from->elapsed_s;
    to->cpu_python_s += from->cpu_python_s;
    to->cpu_native_s += from->cpu_native_s;
    to->cpu_kernel_s += from->cpu_kernel_s;
    to->idle_s += from->idle_s;
    merge_waits(&to->wait_s, &from->wait_s);
    to->allocated_mb += from->allocated_mb;
    to->freed_mb += from->freed_mb;
    to->live_mb += from->live_mb;
    to->copied_mb += from->copied_mb;
}

/* Rates are sums that are divided once all is known. */
static void sampling_add(struct report_sampling *to, const struct merge_part *part)
{
    const struct report_sampling *from = &part->report->sampling;
    to->rate_hz += from->rate_hz * part->elapsed_s;
    to->longest_pause_us = fmax(to->longest_pause_us, from->longest_pause_us);
    to->paused_s += from->paused_s;
    to->profiler_cpu_s += from->profiler_cpu_s;
    to->profiler_peak_rss_mb = fmax(to->profiler_peak_rss_mb, from->profiler_peak_rss_mb);
    to->samples = merge_count(to->samples, from->samples);
    to->retried = merge_count(to->retried, from->retried);
    to->dropped = merge_count(to->dropped, from->dropped);
    to->missed = merge_count(to->missed, from->missed);
    to->pauses = merge_count(to->pauses, from->pauses);
    to->shim_records = merge_count(to->shim_records, from->shim_records);
    to->shim_lost = merge_count(to->shim_lost, from->shim_lost);
    if (from->allocation_window > to->allocation_window)
        to->allocation_window = from->allocation_window;
}

static int part_add(struct merge *merge, const struct merge_part *part, double ended_s)
{
    const struct report *from = part->report;
    struct report *to = merge->report;
    totals_add(&to->totals, &from->totals);
    sampling_add(&to->sampling, part);
    to->elapsed_time_sec += from->elapsed_time_sec;
    to->memory |= from->memory;
    to->gpu |= from->gpu;
    to->async_profile |= from->async_profile;
    to->alloc_samples = merge_count(to->alloc_samples, from->alloc_samples);
    to->native_allocations_mb += from->native_allocations_mb;
    bool is_latest = from->start_time_absolute > to->start_time_absolute ||
                     (from->start_time_absolute == to->start_time_absolute &&
                      from->start_time_perf > to->start_time_perf);
    if (is_latest) {
        to->start_time_absolute = from->start_time_absolute;
        to->start_time_perf = from->start_time_perf;
    }
    return merge_points(to, &to->samples, ended_s, &from->samples, part->elapsed_s);
}

/* What only one of them can say: which program it was, and where memory was largest. */
static int head_copy(struct merge *merge, const char *version)
{
    struct report *to = merge->report;
    const struct report *first = merge->parts[0].report, *peak = first;
    for (size_t i = 0; i < merge->count; i++)
        if (merge->parts[i].has_peak)
            peak = merge->parts[i].report;
    bool attached = false;
    for (size_t i = 0; i < merge->count; i++)
        attached |=
            merge->parts[i].report->mode && strcmp(merge->parts[i].report->mode, "attach") == 0;
    to->profiler_name = "scalene-attach";
    to->profiler_version = report_text(to, version);
    to->mode = attached ? "attach" : "launch";
    to->program = report_text(to, first->program ?: "");
    to->filename = report_text(to, first->filename ?: "");
    to->entrypoint_dir = report_text(to, first->entrypoint_dir ?: "");
    to->gpu_device = report_text(to, first->gpu_device ?: "");
    to->main_thread_id = first->main_thread_id;
    to->max_footprint_mb = peak->max_footprint_mb;
    to->max_footprint_python_fraction = peak->max_footprint_python_fraction;
    to->max_footprint_fname = report_text(to, peak->max_footprint_fname);
    to->max_footprint_lineno = peak->max_footprint_lineno;
    to->growth_rate = peak->growth_rate;
    if (!to->profiler_version || !to->program || !to->filename || !to->entrypoint_dir ||
        !to->gpu_device || !to->max_footprint_fname != !peak->max_footprint_fname)
        return -ENOMEM;
    return merge_texts(to, &first->args, &to->args);
}

/* Files may be those of other paths now. */
static int head_place(struct merge *merge)
{
    struct report *report = merge->report;
    const char **const paths[] = { &report->program, &report->max_footprint_fname };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (!*paths[i])
            continue;
        *paths[i] = report_text(report, merge_paths_kept(&merge->paths, *paths[i]));
        if (!*paths[i])
            return -ENOMEM;
    }
    return 0;
}

static int whole_merge(struct merge *merge)
{
    struct report *report = merge->report;
    double ended_s = 0;
    for (size_t i = 0; i < merge->count; i++) {
        if (part_add(merge, &merge->parts[i], ended_s))
            return -ENOMEM;
        ended_s = fmax(ended_s, merge->parts[i].elapsed_s);
    }
    merge->joint =
        (struct merge_part){ report, report_base_s(report), report->elapsed_time_sec, true };
    if (merge->joint.elapsed_s > 0)
        report->sampling.rate_hz /= merge->joint.elapsed_s;
    else
        report->sampling.rate_hz = 0;
    return 0;
}

/* ---- notes ---- */

static bool has_note(const struct report *report, const char *note)
{
    for (size_t i = 0; i < report->notes.count; i++)
        if (strcmp(report->notes.items[i], note) == 0)
            return true;
    return false;
}

static size_t memory_count(const struct merge *merge)
{
    size_t count = 0;
    for (size_t i = 0; i < merge->count; i++)
        count += merge->parts[i].report->memory;
    return count;
}

static const char *program_of(const struct merge *merge, size_t part)
{
    return merge_paths_kept(&merge->paths, merge->parts[part].report->program ?: "");
}

static bool programs_differ(const struct merge *merge)
{
    for (size_t i = 1; i < merge->count; i++)
        if (strcmp(program_of(merge, i), program_of(merge, 0)) != 0)
            return true;
    return false;
}

/* Paths that are one file, and those that might have been meant. */
static int note_paths(struct merge *merge)
{
    const struct merge_paths *paths = &merge->paths;
    char more[64] = "";
    int error = 0;
    if (paths->moved.count > 1)
        snprintf(more, sizeof more, ", one of %zu such paths", paths->moved.count);
    if (paths->moved.count)
        error = report_add_note(merge->report,
                                "same content under two paths: %.256s counts as %.256s here%s",
                                paths->joined[0], paths->joined[1], more);
    *more = '\0';
    if (paths->apart_count > 1)
        snprintf(more, sizeof more, ", one of %zu such pairs", paths->apart_count);
    if (!error && paths->apart_count)
        error = report_add_note(merge->report,
                                "same content under two paths: %.256s and %.256s stay two files, "
                                "as they may be copies in one tree%s",
                                paths->apart[0], paths->apart[1], more);
    return error;
}

static int note_merge(struct merge *merge)
{
    struct report *report = merge->report;
    size_t with_memory = memory_count(merge);
    int error = report_add_note(
        report,
        "this is %zu profiles in one: seconds, memory and counts are their sums, times "
        "count from the start of each one's run",
        merge->count);
    if (!error && with_memory)
        error = report_add_note(report, "the peak of memory is the largest that one of the merged "
                                        "profiles had, and the timelines show the largest at each "
                                        "moment: they are no sums");
    if (!error && with_memory && with_memory < merge->count)
        error = report_add_note(report, "memory was profiled in %zu of the %zu merged profiles",
                                with_memory, merge->count);
    if (!error && programs_differ(merge))
        error = report_add_note(report,
                                "the merged profiles are of different programs; the first "
                                "is %s",
                                report->program);
    if (!error && merge->has_new_pids)
        error = report_add_note(report,
                                "pids that several of the merged profiles have are told "
                                "apart by multiples of %lld",
                                (long long)MERGE_PID_STEP);
    return error ? error : note_paths(merge);
}

static int note_left_out(struct merge *merge)
{
    struct report *report = merge->report;
    int error = 0;
    if (merge->stacks_left_out)
        error = report_add_note(
            report, "left out: %zu of the stacks, those seen least often, with %lld samples",
            merge->stacks_left_out, (long long)merge->hits_left_out);
    if (!error && merge->paths_left_out)
        error = report_add_note(report, "left out: %zu of the stacks of shown lines",
                                merge->paths_left_out);
    if (!error && merge->memory_stacks_left_out)
        error = report_add_note(
            report, "left out: %zu of the memory stacks, those with the least, with %.3g MB",
            merge->memory_stacks_left_out, merge->megabytes_left_out);
    if (!error && merge->runs_left_out)
        error =
            report_add_note(report, "left out: %zu entries of the timeline", merge->runs_left_out);
    if (!error && merge->names_left_out)
        error =
            report_add_note(report, "left out: %zu of the names of tasks", merge->names_left_out);
    return error;
}

static bool all_have_note(const struct merge *merge, const char *note)
{
    for (size_t i = 0; i < merge->count; i++)
        if (!has_note(merge->parts[i].report, note))
            return false;
    return true;
}

/* What not all of them say has numbers of a part alone. */
static int note_copy(struct merge *merge, const char *note)
{
    static const char of_part[] = "in one of them: ";
    bool is_led = all_have_note(merge, note) || strncmp(note, of_part, strlen(of_part)) == 0;
    char text[1024];
    snprintf(text, sizeof text, "%s%s", is_led ? "" : of_part, note);
    return has_note(merge->report, text) ? 0 : report_add_note(merge->report, "%s", text);
}

static int notes_copy(struct merge *merge)
{
    int error = 0;
    for (size_t i = 0; i < merge->count; i++) {
        const struct text_list *notes = &merge->parts[i].report->notes;
        for (size_t n = 0; n < notes->count && !error; n++)
            error = note_copy(merge, notes->items[n]);
    }
    return error;
}

/* ---- the whole ---- */

static void parts_fill(struct merge_part *ret, const struct report *const *parts, size_t count)
{
    size_t peak = 0;
    for (size_t i = 0; i < count; i++) {
        ret[i] = (struct merge_part){ parts[i], report_base_s(parts[i]), parts[i]->elapsed_time_sec,
                                      false };
        if (parts[i]->max_footprint_mb > parts[peak]->max_footprint_mb)
            peak = i;
    }
    ret[peak].has_peak = true;
}

static int merge_run(struct merge *merge, const char *version)
{
    struct report *report = merge->report;
    report->notes.items = arena_take(&report->arena, NOTES_MAX * sizeof *report->notes.items);
    int error = report->notes.items ? head_copy(merge, version) : -ENOMEM;
    if (!error)
        error = whole_merge(merge);
    if (!error)
        error = pids_take(merge);
    if (!error)
        error = merge_paths_init(&merge->paths, merge->parts, merge->count);
    if (!error)
        error = head_place(merge);
    if (!error)
        error = note_merge(merge);
    if (!error)
        error = processes_merge(merge);
    if (!error)
        error = merge_files(merge);
    if (!error)
        error = merge_stacks(merge);
    if (!error)
        error = note_left_out(merge);
    return error ? error : notes_copy(merge);
}

int report_merge(const struct report *const *parts, size_t count, const char *version,
                 struct report **ret)
{
    CLEANUP(report_freep) struct report *report = report_new();
    AUTO_FREE struct merge_part *own = calloc(count, sizeof *own);
    if (!report || !own)
        return -ENOMEM;
    parts_fill(own, parts, count);
    struct merge merge = { .parts = own, .count = count, .report = report };
    int error = merge_run(&merge, version);
    merge_paths_done(&merge.paths);
    key_index_done(&merge.pids);
    free(merge.new_pids);
    if (!error)
        *ret = TAKE_PTR(report);
    return error;
}
