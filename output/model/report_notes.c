/* What a report has to say about what is missing from it. */
#include "output/model/report_build.h"

#include <stdio.h>
#include <string.h>

static const double UNSEEN_LEAST_BYTES = 64 << 20;

static int hidden_is_less(const void *a, const void *b)
{
    const struct report_hidden *left = a, *right = b;
    if (left->seconds != right->seconds)
        return left->seconds < right->seconds ? 1 : -1;
    return strcmp(left->path, right->path);
}

/* The biggest of the files that only hidden stacks were in. */
static int add_hidden(struct report *report, const struct profile *profile)
{
    size_t all = profile->places.file_index.count, count = 0;
    struct report_hidden *items = calloc(all + 1, sizeof *items);
    struct report_hidden *kept = arena_take(&report->arena, HIDDEN_MAX * sizeof *kept);
    for (size_t i = 0; items && i < all; i++) {
        const struct source_file *file = &profile->places.files[i];
        if (file->hidden_ns)
            items[count++] = (struct report_hidden){ file->path, (double)file->hidden_ns / 1e9 };
    }
    if (items && kept) {
        qsort(items, count, sizeof *items, hidden_is_less);
        count = count < HIDDEN_MAX ? count : HIDDEN_MAX;
        memcpy(kept, items, count * sizeof *items);
    }
    for (size_t i = 0; items && kept && i < count; i++)
        kept[i].path = report_text(report, kept[i].path);
    free(items);
    if (!items || !kept)
        return -ENOMEM;
    report->hidden.items = kept;
    report->hidden.count = count;
    report->hidden.by_decorator = profile->places.is_restricted;
    return 0;
}

static int note_hidden(struct report *report, const struct report_gaps *gaps)
{
    double base = report_base_s(report), hidden = base - gaps->shown_s;
    if (base <= 0 || hidden < 0.01 * base)
        return 0;
    if (!report->hidden.count)
        return report_add_note(report, "%.1f %% of the time has no Python on its stack",
                               100 * hidden / base);
    return report_add_note(
        report, "%.1f %% of the time has no shown line on its stack, %.3g s in %s",
        100 * hidden / base, report->hidden.items[0].seconds, report->hidden.items[0].path);
}

/* Who asked for a rate has to know that it was another. */
static int note_rate(struct report *report, const struct profile *profile)
{
    double wanted = profile->settings.wanted_rate_hz, rate = profile->sampling.rate_hz;
    if (!profile->has_sampling || wanted <= 0 || rate > 0.9 * wanted)
        return 0;
    return report_add_note(
        report,
        "%.0f looks a second were made and not %.0f: more would have taken more "
        "than %g %% of the program's time (--max-overhead), or a tenth of a core",
        rate, wanted, profile->settings.max_overhead_percent);
}

/* A few are of no weight, and usual. */
static int note_dropped(struct report *report, const struct profile *profile)
{
    uint64_t dropped = profile->sampling.dropped, looks = dropped + profile->sampling.samples;
    if (!profile->has_sampling || dropped * 20 <= looks)
        return 0;
    return report_add_note(
        report,
        "%.0f %% of the looks found no whole stack (%llu were dropped): what ran then is where the "
        "next look met the thread running, or on no line",
        100 * (double)dropped / (double)looks, (unsigned long long)dropped);
}

static int note_stacks(struct report *report, const struct profile *profile)
{
    const struct stack_table *table = &profile->combined;
    if (!table->dropped_stacks)
        return 0;
    return report_add_note(
        report, "left out: %llu of the stacks, those seen least often, with %llu samples",
        (unsigned long long)table->dropped_stacks, (unsigned long long)table->dropped_hits);
}

static int note_count(struct report *report, uint64_t count, const char *what)
{
    if (!count)
        return 0;
    return report_add_note(report, "left out: %llu %s", (unsigned long long)count, what);
}

static int note_timelines(struct report *report, const struct profile *profile)
{
    uint64_t left_out = timeline_left_out(&profile->memory.footprints);
    for (size_t i = 0; i < profile->places.tally_index.count; i++)
        if (profile->places.tallies[i].memory)
            left_out += timeline_left_out(&profile->places.tallies[i].memory->footprints);
    return note_count(report, left_out,
                      "points of the memory timelines, all but the largest of each span of time");
}

/*
 * By the kernel's account of whoever has most of it. What is allocated need never be used, what was
 * given back may still be there, and samples tell of it within a few windows: only much more than
 * there should be is worth a word.
 */
static int note_unseen(struct report *report, const struct profile *profile)
{
    const struct process_tally *most = NULL;
    double most_bytes = UNSEEN_LEAST_BYTES;
    double spread_bytes = 4 * (double)profile->settings.allocation_window +
                          (double)profile->memory.loss.allocated_bytes;
    for (size_t i = 0; i < profile->process_index.count; i++) {
        const struct process_tally *process = &profile->processes[i];
        double seen_bytes = process->memory ? process->memory->peak_bytes + spread_bytes : 0;
        double unseen_bytes = (double)process->grown_bytes - seen_bytes;
        if (process->memory && unseen_bytes > most_bytes && unseen_bytes > seen_bytes) {
            most = process;
            most_bytes = unseen_bytes;
        }
    }
    if (!most)
        return 0;
    return report_add_note(
        report,
        "%.0f MB that process %d has came by no allocator that is watched: a library with one of "
        "its own (Arrow, Polars, DuckDB), or threads' stacks; lines lack it",
        most_bytes / 1048576, (int)most->pid);
}

static int note_gaps(struct report *report, const struct profile *profile,
                     const struct report_gaps *gaps)
{
    char small[128], far[128], processes[128];
    snprintf(small, sizeof small, "of the files, which are below the thresholds and have %.3g s",
             gaps->small_files_s);
    snprintf(far, sizeof far, "samples on lines after line %d of their file", FAR_LINES_MAX);
    snprintf(processes, sizeof processes,
             "of the processes, which had ended and used %.3f s of CPU time",
             profile->dropped_processes_s);
    int error = note_count(report, gaps->small_files, small);
    if (!error)
        error = note_count(report, profile->dropped_processes, processes);
    if (!error)
        error = note_count(report, gaps->runs, "entries of the timeline");
    if (!error)
        error = note_count(report, gaps->threads, "of the threads");
    if (!error)
        error = note_count(report, gaps->moments, "of the moments at which lines were met");
    if (!error)
        error =
            note_count(report, gaps->more_source_notes,
                       "sentences about sources that cannot be read as they are, or have changed");
    return error ? error : note_count(report, gaps->far_lines, far);
}

int report_add_notes(struct report *report, const struct profile *profile,
                     const struct report_gaps *gaps)
{
    int error = add_hidden(report, profile);
    for (size_t i = 0; i < profile->note_count && !error; i++)
        error = report_add_note(report, "%s", profile->notes[i]);
    if (!error && report->hidden.by_decorator)
        error = report_add_note(report, "only functions with @profile are shown");
    if (!error)
        error = note_rate(report, profile);
    if (!error)
        error = note_dropped(report, profile);
    if (!error)
        error = note_hidden(report, gaps);
    if (!error)
        error = note_stacks(report, profile);
    if (!error)
        error = note_timelines(report, profile);
    if (!error)
        error = note_unseen(report, profile);
    return error ? error : note_gaps(report, profile, gaps);
}
