/* Stacks and the timeline of a report, the stacks with most hits first. */
#include "output/model/report_build.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/error.h"

#include <stdio.h>
#include <string.h>

/* ---- the order of stacks: most hits first ---- */

struct rank {
    uint64_t hits;
    uint32_t node;
};

static int rank_is_lower(const void *a, const void *b)
{
    const struct rank *left = a, *right = b;
    if (left->hits != right->hits)
        return left->hits < right->hits ? 1 : -1;
    return (left->node > right->node) - (left->node < right->node);
}

/* The caller frees them. NULL when out of memory. */
static struct rank *ranks_new(const struct stack_table *table)
{
    struct rank *ranks = calloc(table->stack_count + 1, sizeof *ranks);
    size_t count = 0;
    for (uint32_t i = 0; ranks && i < table->count; i++)
        if (table->nodes[i].is_stack)
            ranks[count++] = (struct rank){ table->nodes[i].hits, i };
    if (ranks)
        qsort(ranks, count, sizeof *ranks, rank_is_lower);
    return ranks;
}

/* ---- stitched stacks ---- */

static const struct report_frame gap = { "native", "<more frames>", "", -1, 0, 0 };

static const struct report_frame *frame_of(struct report *report, const struct profile *profile,
                                           const struct place *place)
{
    struct report_frame *frame = arena_take(&report->arena, sizeof *frame);
    if (!frame)
        return NULL;
    bool is_python = place->kind == FRAME_PYTHON;
    const char *file = is_python ? profile->places.files[place->path].path : place->file;
    *frame = (struct report_frame){
        .kind = is_python ? "py" : "native",
        .display_name = report_text(report, place->name ?: ""),
        .filename_or_module = report_text(report, file ?: ""),
        .line = is_python ? place->line : -1,
        .ip = is_python ? -1 : (int64_t)place->ip,
        .offset = is_python ? -1 : (int64_t)place->offset,
    };
    return frame;
}

/* `known` has the frame of each place that came up before. */
static int stack_write(struct report *report, const struct profile *profile,
                       const struct stack_table *table, uint32_t node,
                       const struct report_frame **known, struct report_stack *ret)
{
    uint32_t places[STACK_DEPTH_MAX];
    size_t count = stack_table_frames(table, node, places);
    const struct report_frame **frames = arena_take(&report->arena, count * sizeof *frames);
    if (!frames)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        if (places[i] == STACK_FRAME_GAP) {
            frames[i] = &gap;
            continue;
        }
        if (!known[places[i]])
            known[places[i]] = frame_of(report, profile, place_at(profile, places[i]));
        frames[i] = known[places[i]];
        if (!frames[i])
            return -ENOMEM;
    }
    ret->frames.items = frames;
    ret->frames.count = count;
    ret->hits = (int64_t)table->nodes[node].hits;
    ret->megabytes = (double)table->nodes[node].hits / 1048576;
    return 0;
}

/* `indexes[node]` becomes the stack's place in the list; it may be NULL. */
static int stacks_write(struct report *report, const struct profile *profile,
                        const struct stack_table *table, uint32_t *indexes,
                        struct report_stack **ret)
{
    size_t place_count = profile->places.place_index.count;
    AUTO_FREE struct rank *ranks = ranks_new(table);
    AUTO_FREE const struct report_frame **known = calloc(place_count + 1, sizeof(void *));
    struct report_stack *items = arena_take(&report->arena, table->stack_count * sizeof *items);
    if (!ranks || !known || !items)
        return -ENOMEM;
    for (size_t i = 0; i < table->stack_count; i++) {
        if (indexes)
            indexes[ranks[i].node] = (uint32_t)i;
        if (stack_write(report, profile, table, ranks[i].node, known, &items[i]))
            return -ENOMEM;
    }
    *ret = items;
    return 0;
}

static int add_timeline(struct report *report, const struct profile *profile,
                        const uint32_t *indexes, struct report_gaps *gaps)
{
    struct report_run *items = arena_take(&report->arena, profile->run_count * sizeof *items);
    size_t count = 0;
    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < profile->run_count; i++) {
        const struct stack_run *run = &profile->runs[i];
        const struct thread_tally *thread = &profile->threads[run->thread];
        if (run->stack == STACK_NONE)
            continue;
        items[count++] = (struct report_run){
            .t_sec = (double)run->time / (1000000000 / RUN_TIME_NS),
            .stack_index = indexes[run->stack],
            .count = run->count,
            .thread_id = (int64_t)thread->ident,
            .pid = profile->processes[thread->process].pid,
            .tid = thread->tid,
        };
    }
    report->timeline.items = items;
    report->timeline.count = count;
    gaps->runs = profile->run_count - count + profile->dropped_runs;
    return 0;
}

static int time_is_later(const void *a, const void *b)
{
    const struct report_stack_time *left = a, *right = b;
    if (left->stack_index != right->stack_index)
        return left->stack_index < right->stack_index ? -1 : 1;
    if (left->pid != right->pid)
        return left->pid < right->pid ? -1 : 1;
    return (left->tid > right->tid) - (left->tid < right->tid);
}

static struct report_stack_time stack_time_write(const struct profile *profile,
                                                 const struct stack_time *time, uint32_t index)
{
    const struct thread_tally *thread =
        time->thread == NOTHING ? NULL : &profile->threads[time->thread];
    return (struct report_stack_time){
        .stack_index = index,
        .pid = thread ? profile->processes[thread->process].pid : -1,
        .tid = thread ? thread->tid : -1,
        .samples = (int64_t)time->samples,
        .hits = (int64_t)time->hits,
        .cpu_python_s = report_seconds(time->python_ns),
        .cpu_native_s = report_seconds(time->native_ns),
        .cpu_kernel_s = report_seconds(time->kernel_ns),
        .idle_s = report_seconds(time->idle_ns),
        .wait_s = report_waits(time->wait_ns),
    };
}

static int add_stack_times(struct report *report, const struct profile *profile,
                           const uint32_t *indexes)
{
    size_t count = profile->times.index.count;
    struct report_stack_time *items = arena_take(&report->arena, count * sizeof *items);
    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        items[i] = stack_time_write(profile, &profile->times.items[i],
                                    indexes[profile->times.items[i].stack]);
    qsort(items, count, sizeof *items, time_is_later);
    report->stack_times.items = items;
    report->stack_times.count = count;
    return 0;
}

/* ---- stacks of shown lines ---- */

static const char *path_text(struct report *report, const struct profile *profile,
                             const struct place *place)
{
    char text[8192];
    snprintf(text, sizeof text, "%s %s:%d;", profile->places.files[place->path].path,
             place->name ?: "", place->line);
    return report_text(report, text);
}

int report_path_write(struct report *report, const struct profile *profile,
                      const struct stack_table *table, uint32_t node, const char **known,
                      struct text_list *ret)
{
    uint32_t places[STACK_DEPTH_MAX];
    size_t count = stack_table_frames(table, node, places);
    const char **frames = arena_take(&report->arena, count * sizeof *frames);
    if (!frames)
        return -ENOMEM;
    *ret = (struct text_list){ frames, 0 };
    for (size_t i = 0; i < count; i++) {
        const struct place *place =
            places[i] == STACK_FRAME_GAP ? NULL : place_at(profile, places[i]);
        if (!place || place->line_tally == NOTHING)
            continue;
        if (!known[places[i]])
            known[places[i]] = path_text(report, profile, place);
        if (!known[places[i]])
            return -ENOMEM;
        frames[ret->count++] = known[places[i]];
    }
    return 0;
}

static int path_write(struct report *report, const struct profile *profile, uint32_t node,
                      const char **known, struct report_path *ret)
{
    const struct stack_node *stack = &profile->shown.nodes[node];
    double base_ns = 1e9 * report_base_s(report);
    *ret = (struct report_path){
        .count = (int64_t)stack->hits,
        .python_time = base_ns > 0 ? (double)stack->python_ns / base_ns : 0,
        .c_time = base_ns > 0 ? (double)stack->c_ns / base_ns : 0,
        .cpu_samples = base_ns > 0 ? (double)stack->base_ns / base_ns : 0,
    };
    return report_path_write(report, profile, &profile->shown, node, known, &ret->frames);
}

static int add_paths(struct report *report, const struct profile *profile)
{
    const struct stack_table *table = &profile->shown;
    AUTO_FREE struct rank *ranks = ranks_new(table);
    AUTO_FREE const char **known =
        calloc(profile->places.place_index.count + 1, sizeof(const char *));
    struct report_path *items = arena_take(&report->arena, table->stack_count * sizeof *items);
    size_t count = 0;
    if (!ranks || !known || !items)
        return -ENOMEM;
    for (size_t i = 0; i < table->stack_count; i++) {
        if (path_write(report, profile, ranks[i].node, known, &items[count]))
            return -ENOMEM;
        count += items[count].frames.count > 0;
    }
    report->stacks.items = items;
    report->stacks.count = count;
    return 0;
}

static int add_cpu_stacks(struct report *report, const struct profile *profile,
                          struct report_gaps *gaps)
{
    AUTO_FREE uint32_t *indexes = calloc(profile->combined.count + 1, sizeof *indexes);
    if (!indexes)
        return -ENOMEM;
    int error =
        stacks_write(report, profile, &profile->combined, indexes, &report->combined_stacks.items);
    report->combined_stacks.count = profile->combined.stack_count;
    if (!error)
        error = add_timeline(report, profile, indexes, gaps);
    if (!error)
        error = add_stack_times(report, profile, indexes);
    return error ? error : add_paths(report, profile);
}

/* As the lines' live_mb: what nobody freed, whether its process still runs or not. */
static int add_memory_stacks(struct report *report, const struct profile *profile)
{
    const struct stack_table *stacks = &profile->memory.stacks;
    AUTO_FREE uint32_t *indexes = calloc(stacks->count + 1, sizeof *indexes);
    double *live = arena_take(&report->arena, stacks->stack_count * sizeof *live);
    if (!indexes || !live ||
        stacks_write(report, profile, stacks, indexes, &report->memory_stacks.items))
        return -ENOMEM;
    for (size_t i = 0; i < stacks->count; i++)
        if (stacks->nodes[i].is_stack)
            live[indexes[i]] = memory_megabytes(stacks->nodes[i].live);
    report->memory_stacks.count = stacks->stack_count;
    report->memory_stacks_live_mb = (struct number_list){ live, stacks->stack_count };
    return 0;
}

int report_add_stacks(struct report *report, const struct profile *profile,
                      struct report_gaps *gaps)
{
    int error = add_memory_stacks(report, profile);
    return error || profile->settings.no_stacks ? error : add_cpu_stacks(report, profile, gaps);
}
