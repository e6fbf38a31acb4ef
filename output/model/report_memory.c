/* What a report says of the memory of the run as a whole, and which lines leak. */
#include "output/model/report_build.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The last moment that anything is known of. */
static uint64_t last_ns(const struct profile *profile)
{
    uint64_t memory_ns = profile->memory.last_ns;
    return profile->last_ns > memory_ns ? profile->last_ns : memory_ns;
}

struct memory_base report_memory_base(const struct profile *profile)
{
    uint64_t now_ns = last_ns(profile);
    return (struct memory_base){
        .allocated_bytes = profile->memory.allocated_bytes,
        .elapsed_s = profile->has_sampling ? profile->sampling.elapsed_s : (double)now_ns / 1e9,
        .now_ns = now_ns,
    };
}

/* ---- the run as a whole ---- */

/* What found no room in the ring counts here, though nobody knows whose it was. */
static void add_totals(struct report *report, const struct memory_account *account)
{
    const struct memory_loss_event *loss = &account->loss;
    report->totals.allocated_mb =
        memory_megabytes(account->allocated_bytes + (double)loss->allocated_bytes);
    report->totals.freed_mb = memory_megabytes(account->freed_bytes + (double)loss->freed_bytes);
    report->totals.live_mb = memory_megabytes(account->live_bytes + account->left_bytes);
    report->totals.copied_mb = memory_megabytes(account->copied_bytes + (double)loss->copied_bytes);
    report->sampling.shim_records = (int64_t)(loss->records ?: account->events);
    report->sampling.shim_lost = (int64_t)loss->lost;
    report->alloc_samples = report->sampling.shim_records;
}

/* The growth rate: how much of all that had been allocated was there when most was. */
static int add_peak(struct report *report, const struct profile *profile)
{
    const struct memory_account *account = &profile->memory;
    const struct tally *line =
        account->peak_line == NOTHING ? NULL : &profile->places.tallies[account->peak_line];
    if (account->peak_bytes <= 0)
        return 0;
    report->max_footprint_mb = memory_megabytes(account->peak_bytes);
    report->max_footprint_python_fraction =
        fmin(fmax(account->peak_python_bytes / account->peak_bytes, 0), 1);
    report->growth_rate = fmin(100 * account->peak_bytes / account->peak_allocated_bytes, 100);
    report->max_footprint_fname =
        line ? report_text(report, profile->places.files[line->file].path) : "<native>";
    report->max_footprint_lineno = line ? line->line : -1;
    return report->max_footprint_fname ? 0 : -ENOMEM;
}

static int note_memory(struct report *report, const struct memory_account *account)
{
    int error = 0;
    if (account->hidden_bytes >= 0.01 * account->allocated_bytes && account->hidden_bytes > 0)
        error = report_add_note(
            report, "%.1f %% of the memory was allocated with no shown line on the stack",
            100 * account->hidden_bytes / account->allocated_bytes);
    if (!error && account->loss.lost)
        error = report_add_note(report,
                                "%llu of the shim's records were lost: %.3g MB that were allocated "
                                "and %.3g MB that were freed are in the totals and on no line",
                                (unsigned long long)account->loss.lost,
                                (double)account->loss.allocated_bytes / 1048576,
                                (double)account->loss.freed_bytes / 1048576);
    if (!error && account->unfollowed_bytes > 0)
        error = report_add_note(report,
                                "more than %d sampled blocks were live at once: of %.3g MB it is "
                                "not known whether they were freed",
                                BLOCKS_MAX, account->unfollowed_bytes / 1048576);
    if (!error && account->stacks.dropped_stacks)
        error = report_add_note(
            report, "left out: %llu of the memory stacks, those with the least, with %.3g MB",
            (unsigned long long)account->stacks.dropped_stacks,
            (double)account->stacks.dropped_hits / 1048576);
    return error;
}

int report_add_memory(struct report *report, const struct profile *profile)
{
    const struct memory_account *account = &profile->memory;
    report->memory = profile->settings.memory;
    report->sampling.allocation_window = (int64_t)profile->settings.allocation_window;
    report->native_allocations_mb = memory_megabytes(account->native_bytes);
    add_totals(report, account);
    int error = add_peak(report, profile);
    if (!error)
        error = timeline_write(&account->footprints, &report->arena, &report->samples);
    return error ? error : note_memory(report, account);
}

/* ---- leaks ---- */

/* The stack that ends on the line and through which most came; STACK_NONE: it was left out. */
static uint32_t stack_find(const struct profile *profile, uint32_t line)
{
    const struct stack_table *stacks = &profile->memory.stacks;
    uint32_t most = STACK_NONE;
    for (uint32_t i = 1; i < stacks->count; i++) {
        const struct stack_node *node = &stacks->nodes[i];
        bool is_there = node->is_stack && node->frame != STACK_FRAME_GAP &&
                        place_at(profile, node->frame)->line_tally == line;
        if (is_there && (most == STACK_NONE || node->hits > stacks->nodes[most].hits))
            most = i;
    }
    return most;
}

static bool line_leaks(const struct profile *profile, const struct tally *tally, struct leak *ret)
{
    return tally->memory && !tally->name && places_show(&profile->places, tally) &&
           survival_leaks(&tally->memory->survival, last_ns(profile), tally->memory->live_bytes,
                          ret);
}

static int leak_write(struct report *report, const struct profile *profile, uint32_t line,
                      const struct leak *leak, const char **known, struct report_leak *ret)
{
    char number[16];
    snprintf(number, sizeof number, "%d", profile->places.tallies[line].line);
    *ret = (struct report_leak){ report_text(report, number),
                                 leak->likelihood,
                                 leak->bytes_per_s / 1048576,
                                 memory_megabytes(leak->live_bytes),
                                 { 0 } };
    uint32_t stack = stack_find(profile, line);
    if (!ret->lineno)
        return -ENOMEM;
    return stack == STACK_NONE ? 0
                               : report_path_write(report, profile, &profile->memory.stacks, stack,
                                                   known, &ret->stack);
}

static int leak_is_later(const void *a, const void *b)
{
    const struct report_leak *left = a, *right = b;
    size_t left_size = strlen(left->lineno), right_size = strlen(right->lineno);
    return left_size != right_size ? (left_size > right_size) - (left_size < right_size)
                                   : strcmp(left->lineno, right->lineno);
}

/* Room for the leaks of each file. */
static int leaks_count(struct report *report, const struct profile *profile,
                       const uint32_t *numbers)
{
    struct leak leak;
    for (size_t i = 0; i < profile->places.tally_index.count; i++) {
        const struct tally *tally = &profile->places.tallies[i];
        if (numbers[tally->file] && line_leaks(profile, tally, &leak))
            report->files.items[numbers[tally->file] - 1].leaks.count++;
    }
    for (size_t i = 0; i < report->files.count; i++) {
        struct report_file *file = &report->files.items[i];
        file->leaks.items =
            arena_take(&report->arena, file->leaks.count * sizeof(struct report_leak));
        if (!file->leaks.items)
            return -ENOMEM;
        file->leaks.count = 0;
    }
    return 0;
}

int report_add_leaks(struct report *report, const struct profile *profile, const uint32_t *numbers)
{
    AUTO_FREE const char **known =
        calloc(profile->places.place_index.count + 1, sizeof(const char *));
    if (!profile->settings.leak_detector)
        return 0;
    int error = known ? leaks_count(report, profile, numbers) : -ENOMEM;
    for (uint32_t i = 0; i < profile->places.tally_index.count && !error; i++) {
        const struct tally *tally = &profile->places.tallies[i];
        struct leak leak;
        if (!numbers[tally->file] || !line_leaks(profile, tally, &leak))
            continue;
        struct report_file *file = &report->files.items[numbers[tally->file] - 1];
        error =
            leak_write(report, profile, i, &leak, known, &file->leaks.items[file->leaks.count++]);
    }
    for (size_t i = 0; i < report->files.count && !error; i++)
        qsort(report->files.items[i].leaks.items, report->files.items[i].leaks.count,
              sizeof(struct report_leak), leak_is_later);
    return error;
}
