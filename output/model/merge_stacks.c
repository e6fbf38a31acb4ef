/* Stacks of merged profiles: equal ones once, those with most first, and within their bounds. */
#include "output/model/merge_build.h"

#include "output/model/stack_table.h"
#include "sampler/base/cleanup.h"
#include "sampler/base/error.h"
#include "sampler/base/intern.h"

#include <string.h>

DEFINE_CLEANUP(struct intern *, intern_free)

/* Texts, frames and stacks as numbers: a stack is its last frame and the stack before it. */
struct numbers {
    const struct merge_paths *paths; /* which files are one */
    struct intern *texts;
    struct key_index frames, nodes;
    const void **copies; /* of each frame in the report's arena, once there is one */
    size_t copy_room;
};

static void numbers_done(struct numbers *numbers)
{
    intern_freep(&numbers->texts);
    key_index_done(&numbers->frames);
    key_index_done(&numbers->nodes);
    free(numbers->copies);
}

/* Where the copy of the frame that was numbered last, or before, is kept. NULL when out of memory.
 */
static const void **copy_of(struct numbers *numbers, int64_t frame)
{
    size_t room = numbers->frames.room;
    if (frame < 0)
        return NULL;
    if (room > numbers->copy_room) {
        const void **copies = realloc(numbers->copies, room * sizeof *copies);
        if (!copies)
            return NULL;
        memset(copies + numbers->copy_room, 0, (room - numbers->copy_room) * sizeof *copies);
        numbers->copies = copies;
        numbers->copy_room = room;
    }
    return &numbers->copies[frame];
}

static uint64_t text_number(struct numbers *numbers, const char *text)
{
    return (uintptr_t)intern_text(numbers->texts, text ?: "");
}

static uint64_t path_number(struct numbers *numbers, const char *path)
{
    return text_number(numbers, merge_paths_kept(numbers->paths, path ?: ""));
}

/* By name and place, as its address is another in each process; without a name, by its offset. */
static int64_t frame_number(struct numbers *numbers, const struct report_frame *frame)
{
    bool is_named = frame->display_name && *frame->display_name;
    int64_t place = frame->line >= 0 || is_named ? frame->line : ~frame->offset;
    const struct key key = { { text_number(numbers, frame->display_name),
                               path_number(numbers, frame->filename_or_module), (uint64_t)place } };
    return key.part[0] && key.part[1] ? key_index_add(&numbers->frames, key) : -ENOMEM;
}

/* As its file is called now; the text lives as long as the numbers. NULL when out of memory. */
static const char *text_frame(struct numbers *numbers, const char *frame)
{
    AUTO_FREE char *moved = NULL;
    if (merge_paths_frame(numbers->paths, frame, &moved))
        return NULL;
    return intern_text(numbers->texts, moved ?: frame);
}

/* Of what text_frame gave. */
static int64_t text_frame_number(struct numbers *numbers, const char *frame)
{
    const struct key key = { { (uintptr_t)frame, 0, 0 } };
    return frame ? key_index_add(&numbers->frames, key) : -ENOMEM;
}

/* Number 0 is no stack: 1 + a node's number. */
static int64_t stack_push(struct numbers *numbers, int64_t stack, int64_t frame)
{
    const struct key key = { { (uint64_t)stack, (uint64_t)frame, 0 } };
    int64_t node = frame < 0 ? frame : key_index_add(&numbers->nodes, key);
    return node < 0 ? node : node + 1;
}

/* ---- a list of stacks of any kind ---- */

/* What stands in the report's list, and its place there once the list is in order. */
struct joined {
    union {
        struct report_stack stack;
        struct report_path path;
    };
    uint32_t number, place;
};

struct joint_list {
    struct joined *items;
    size_t count, room;
    struct key_index index; /* of a stack's number; the place in `items` */
};

static void joint_list_done(struct joint_list *list)
{
    free(list->items);
    key_index_done(&list->index);
}

/* New ones are all zero. NULL when out of memory. */
static struct joined *joint_find(struct joint_list *list, int64_t stack)
{
    const struct key key = { { (uint64_t)stack, 0, 0 } };
    size_t known = list->index.count;
    int64_t at = key_index_add(&list->index, key);
    if (at < 0)
        return NULL;
    if ((size_t)at < known)
        return &list->items[at];
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        struct joined *items = realloc(list->items, room * sizeof *items);
        if (!items)
            return NULL;
        list->items = items;
        list->room = room;
    }
    list->items[list->count] = (struct joined){ .number = (uint32_t)list->count };
    return &list->items[list->count++];
}

/* ---- order, and bounds ---- */

static int text_compare(const char *a, const char *b)
{
    return strcmp(a ?: "", b ?: "");
}

static int frame_compare(const struct report_frame *a, const struct report_frame *b)
{
    int order = text_compare(a->filename_or_module, b->filename_or_module);
    if (order == 0)
        order = text_compare(a->display_name, b->display_name);
    return order ? order : (a->line > b->line) - (a->line < b->line);
}

static int stack_is_later(const void *a, const void *b)
{
    const struct report_stack *left = &((const struct joined *)a)->stack;
    const struct report_stack *right = &((const struct joined *)b)->stack;
    if (left->hits != right->hits)
        return left->hits < right->hits ? 1 : -1;
    if (left->megabytes != right->megabytes)
        return left->megabytes < right->megabytes ? 1 : -1;
    for (size_t i = 0; i < left->frames.count && i < right->frames.count; i++) {
        int order = frame_compare(left->frames.items[i], right->frames.items[i]);
        if (order)
            return order;
    }
    return (left->frames.count > right->frames.count) - (left->frames.count < right->frames.count);
}

static int path_is_later(const void *a, const void *b)
{
    const struct report_path *left = &((const struct joined *)a)->path;
    const struct report_path *right = &((const struct joined *)b)->path;
    if (left->count != right->count)
        return left->count < right->count ? 1 : -1;
    for (size_t i = 0; i < left->frames.count && i < right->frames.count; i++) {
        int order = strcmp(left->frames.items[i], right->frames.items[i]);
        if (order)
            return order;
    }
    return (left->frames.count > right->frames.count) - (left->frames.count < right->frames.count);
}

/* How many there may be; `places[number]` is where a stack of the joined list went. */
static size_t list_settle(struct joint_list *list, int (*is_later)(const void *, const void *),
                          uint32_t *places)
{
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, is_later);
    for (size_t i = 0; i < list->count && places; i++)
        places[list->items[i].number] = (uint32_t)i;
    return list->count < STACKS_MAX ? list->count : STACKS_MAX;
}

/* ---- stitched stacks and memory stacks ---- */

static const struct report_frame *frame_copy(struct report *report, struct numbers *numbers,
                                             const struct report_frame *from)
{
    const void **known = copy_of(numbers, frame_number(numbers, from));
    struct report_frame *copy = NULL;
    if (!known || *known)
        return known ? *known : NULL;
    if (!(copy = arena_take(&report->arena, sizeof *copy)))
        return NULL;
    *copy = *from;
    copy->kind = report_text(report, from->kind ?: "");
    copy->display_name = report_text(report, from->display_name ?: "");
    copy->filename_or_module =
        report_text(report, merge_paths_kept(numbers->paths, from->filename_or_module ?: ""));
    return copy->kind && copy->display_name && copy->filename_or_module ? *known = copy : NULL;
}

static int frames_copy(struct report *report, struct numbers *numbers,
                       const struct report_stack *from, struct report_stack *to)
{
    const struct report_frame **frames =
        arena_take(&report->arena, from->frames.count * sizeof *frames);
    for (size_t i = 0; i < from->frames.count && frames; i++)
        if (!(frames[i] = frame_copy(report, numbers, from->frames.items[i])))
            return -ENOMEM;
    to->frames.items = frames;
    to->frames.count = from->frames.count;
    return frames ? 0 : -ENOMEM;
}

/* `*ret_number` is the place in the joined list as it grows. */
static int stack_add(struct merge *merge, struct numbers *numbers, struct joint_list *list,
                     const struct report_stack *from, uint32_t *ret_number)
{
    int64_t stack = 0;
    for (size_t i = 0; i < from->frames.count && stack >= 0; i++)
        stack = stack_push(numbers, stack, frame_number(numbers, from->frames.items[i]));
    struct joined *joined = stack < 0 ? NULL : joint_find(list, stack);
    if (!joined)
        return -ENOMEM;
    joined->stack.hits = merge_count(joined->stack.hits, from->hits);
    joined->stack.megabytes += from->megabytes;
    *ret_number = joined->number;
    return joined->stack.frames.items ? 0
                                      : frames_copy(merge->report, numbers, from, &joined->stack);
}

static int stacks_write(struct report *report, const struct joint_list *list, size_t count,
                        struct report_stack **ret)
{
    struct report_stack *items = arena_take(&report->arena, count * sizeof *items);
    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        items[i] = list->items[i].stack;
    *ret = items;
    return 0;
}

/* `numbers_of[i]` is of the i-th stack of all parts, one after the other. */
static int combined_merge(struct merge *merge, struct numbers *numbers, struct joint_list *list,
                          uint32_t *numbers_of)
{
    int error = 0;
    for (size_t i = 0; i < merge->count; i++) {
        const struct report *part = merge->parts[i].report;
        for (size_t n = 0; n < part->combined_stacks.count && !error; n++)
            error = stack_add(merge, numbers, list, &part->combined_stacks.items[n], numbers_of++);
    }
    return error;
}

/* Of all parts, at most so many that differ. */
static size_t memory_stacks_count(const struct merge *merge)
{
    size_t count = 0;
    for (size_t i = 0; i < merge->count; i++)
        count += merge->parts[i].report->memory_stacks.count;
    return count;
}

/* `live` is by the stacks' numbers in the joined list. */
static int live_write(struct report *report, const struct joint_list *list, const double *live)
{
    size_t count = report->memory_stacks.count;
    double *items = arena_take(&report->arena, count * sizeof *items);
    for (size_t i = 0; i < count && items; i++)
        items[i] = live[list->items[i].number];
    report->memory_stacks_live_mb = (struct number_list){ items, items ? count : 0 };
    return items ? 0 : -ENOMEM;
}

static int memory_merge(struct merge *merge, struct numbers *numbers)
{
    CLEANUP(joint_list_done) struct joint_list list = { 0 };
    struct report *report = merge->report;
    AUTO_FREE double *live = calloc(memory_stacks_count(merge) + 1, sizeof *live);
    uint32_t number;
    for (size_t i = 0; i < merge->count && live; i++) {
        const struct report *part = merge->parts[i].report;
        for (size_t n = 0; n < part->memory_stacks.count; n++) {
            if (stack_add(merge, numbers, &list, &part->memory_stacks.items[n], &number))
                return -ENOMEM;
            live[number] += report_stack_live_mb(part, n);
        }
    }
    report->memory_stacks.count = list_settle(&list, stack_is_later, NULL);
    for (size_t i = report->memory_stacks.count; i < list.count;
         i++, merge->memory_stacks_left_out++)
        merge->megabytes_left_out += list.items[i].stack.megabytes;
    if (!live || live_write(report, &list, live))
        return -ENOMEM;
    return stacks_write(report, &list, report->memory_stacks.count, &report->memory_stacks.items);
}

/* ---- the timeline ---- */

static int run_is_later(const void *a, const void *b)
{
    const struct report_run *left = a, *right = b;
    if (left->t_sec != right->t_sec)
        return left->t_sec > right->t_sec ? 1 : -1;
    if (left->pid != right->pid)
        return left->pid > right->pid ? 1 : -1;
    if (left->thread_id != right->thread_id)
        return left->thread_id > right->thread_id ? 1 : -1;
    return (left->stack_index > right->stack_index) - (left->stack_index < right->stack_index);
}

/* Those of one part; an index that is none is no run. `places` is of its stacks. */
static size_t runs_copy(const struct merge *merge, size_t part, const uint32_t *places,
                        struct report_run *into)
{
    const struct report *report = merge->parts[part].report;
    size_t count = 0;
    for (size_t i = 0; i < report->timeline.count; i++) {
        struct report_run run = report->timeline.items[i];
        if (run.stack_index < 0 || (size_t)run.stack_index >= report->combined_stacks.count ||
            places[run.stack_index] >= merge->report->combined_stacks.count)
            continue;
        run.stack_index = places[run.stack_index];
        run.pid = merge_pid(merge, part, run.pid);
        into[count++] = run;
    }
    return count;
}

static int timeline_merge(struct merge *merge, const uint32_t *places)
{
    size_t all = 0, count = 0;
    for (size_t i = 0; i < merge->count; i++)
        all += merge->parts[i].report->timeline.count;
    struct report_run *runs = arena_take(&merge->report->arena, all * sizeof *runs);
    if (!runs)
        return -ENOMEM;
    for (size_t i = 0; i < merge->count; i++) {
        count += runs_copy(merge, i, places, runs + count);
        places += merge->parts[i].report->combined_stacks.count;
    }
    qsort(runs, count, sizeof *runs, run_is_later);
    count = count < RUNS_MAX ? count : RUNS_MAX;
    merge->runs_left_out = all - count;
    merge->report->timeline.items = runs;
    merge->report->timeline.count = count;
    return 0;
}

static int stitched_merge(struct merge *merge, struct numbers *numbers)
{
    CLEANUP(joint_list_done) struct joint_list list = { 0 };
    struct report *report = merge->report;
    size_t all = 0;
    for (size_t i = 0; i < merge->count; i++)
        all += merge->parts[i].report->combined_stacks.count;
    AUTO_FREE uint32_t *numbers_of = calloc(all + 1, sizeof *numbers_of);
    AUTO_FREE uint32_t *places = calloc(all + 1, sizeof *places);
    int error = numbers_of && places ? combined_merge(merge, numbers, &list, numbers_of) : -ENOMEM;
    if (error)
        return error;
    report->combined_stacks.count = list_settle(&list, stack_is_later, places);
    for (size_t i = report->combined_stacks.count; i < list.count; i++, merge->stacks_left_out++)
        merge->hits_left_out = merge_count(merge->hits_left_out, list.items[i].stack.hits);
    for (size_t i = 0; i < all; i++)
        numbers_of[i] = places[numbers_of[i]];
    error =
        stacks_write(report, &list, report->combined_stacks.count, &report->combined_stacks.items);
    if (!error)
        error = merge_times(merge, numbers_of);
    return error ? error : timeline_merge(merge, numbers_of);
}

/* ---- stacks of shown lines ---- */

static int texts_copy(struct report *report, struct numbers *numbers, const struct text_list *from,
                      struct text_list *to)
{
    const char **items = arena_take(&report->arena, from->count * sizeof *items);
    for (size_t i = 0; i < from->count && items; i++) {
        const char *frame = text_frame(numbers, from->items[i]);
        const void **known = copy_of(numbers, text_frame_number(numbers, frame));
        if (known && !*known)
            *known = report_text(report, frame);
        if (!known || !*known)
            return -ENOMEM;
        items[i] = *known;
    }
    *to = (struct text_list){ items, from->count };
    return items ? 0 : -ENOMEM;
}

static int path_add(struct merge *merge, struct numbers *numbers, struct joint_list *list,
                    const struct merge_part *part, const struct report_path *from)
{
    int64_t stack = 0;
    for (size_t i = 0; i < from->frames.count && stack >= 0; i++)
        stack = stack_push(numbers, stack,
                           text_frame_number(numbers, text_frame(numbers, from->frames.items[i])));
    struct joined *joined = stack < 0 ? NULL : joint_find(list, stack);
    double share = merge->joint.base_s > 0 ? part->base_s / merge->joint.base_s : 0;
    if (!joined)
        return -ENOMEM;
    joined->path.count = merge_count(joined->path.count, from->count);
    joined->path.python_time += share * from->python_time;
    joined->path.c_time += share * from->c_time;
    joined->path.cpu_samples += share * from->cpu_samples;
    return joined->path.frames.items
               ? 0
               : texts_copy(merge->report, numbers, &from->frames, &joined->path.frames);
}

static int paths_merge(struct merge *merge, struct numbers *numbers)
{
    CLEANUP(joint_list_done) struct joint_list list = { 0 };
    struct report *report = merge->report;
    for (size_t i = 0; i < merge->count; i++) {
        const struct report *part = merge->parts[i].report;
        for (size_t n = 0; n < part->stacks.count; n++)
            if (path_add(merge, numbers, &list, &merge->parts[i], &part->stacks.items[n]))
                return -ENOMEM;
    }
    report->stacks.count = list_settle(&list, path_is_later, NULL);
    report->stacks.items =
        arena_take(&report->arena, report->stacks.count * sizeof *report->stacks.items);
    if (!report->stacks.items)
        return -ENOMEM;
    for (size_t i = 0; i < report->stacks.count; i++)
        report->stacks.items[i] = list.items[i].path;
    merge->paths_left_out = list.count - report->stacks.count;
    return 0;
}

int merge_stacks(struct merge *merge)
{
    CLEANUP(numbers_done) struct numbers numbers = { .paths = &merge->paths };
    int error = intern_new(&numbers.texts);
    if (!error)
        error = stitched_merge(merge, &numbers);
    if (!error)
        error = memory_merge(merge, &numbers);
    return error ? error : paths_merge(merge, &numbers);
}
