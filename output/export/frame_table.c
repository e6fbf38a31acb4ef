#include "output/export/frame_table.h"

#include "output/model/array.h"
#include "sampler/base/cleanup.h"
#include "sampler/base/utf8.h"

#include <inttypes.h>
#include <string.h>

const char *frame_table_text(struct frame_table *table, const char *text)
{
    if (!text || utf8_is_valid(text))
        return intern_text(table->texts, text ?: "");
    AUTO_FREE char *repaired = utf8_repair(text);
    return repaired ? intern_text(table->texts, repaired) : NULL;
}

static bool is_native(const struct report_frame *frame)
{
    return frame->kind && strcmp(frame->kind, "native") == 0;
}

static uint64_t known_or_0(int64_t number)
{
    return number > 0 ? (uint64_t)number : 0;
}

/* A native function without a symbol is called by where it is in its module; all code that was made
 * in memory has one name. */
static const char *frame_name(struct frame_table *table, const struct report_frame *frame)
{
    char offset[32] = "?";
    if (frame->display_name && *frame->display_name)
        return frame_table_text(table, frame->display_name);
    bool has_module = frame->filename_or_module && *frame->filename_or_module;
    if (is_native(frame) && !has_module)
        return intern_text(table->texts, IN_NO_FILE);
    if (is_native(frame) && frame->offset >= 0)
        snprintf(offset, sizeof offset, "0x%" PRIx64, frame->offset);
    return intern_text(table->texts, offset);
}

static int64_t function_find(struct frame_table *table, const struct report_frame *frame)
{
    size_t count = table->function_index.count;
    const struct frame_function function = { frame_name(table, frame),
                                             frame_table_text(table, frame->filename_or_module),
                                             is_native(frame) };
    if (!function.name || !function.file ||
        ARRAY_GROW(table->functions, count, table->function_room))
        return -ENOMEM;
    int64_t number = key_index_add(
        &table->function_index,
        (struct key){ { (uintptr_t)function.name, (uintptr_t)function.file, function.native } });
    if (number == (int64_t)count)
        table->functions[number] = function;
    return number;
}

static int64_t place_find(struct frame_table *table, const struct report_frame *frame)
{
    size_t count = table->place_index.count;
    int64_t function = function_find(table, frame);
    uint64_t line = known_or_0(frame->line);
    if (function < 0 || ARRAY_GROW(table->places, count, table->place_room))
        return -ENOMEM;
    int64_t number =
        key_index_add(&table->place_index, (struct key){ { (uint64_t)function, line } });
    if (number == (int64_t)count)
        table->places[number] = (struct frame_place){ (uint32_t)function, (int64_t)line };
    return number;
}

static int64_t location_find(struct frame_table *table, const struct report_frame *frame)
{
    size_t count = table->location_index.count;
    int64_t place = place_find(table, frame);
    uint64_t ip = known_or_0(frame->ip), offset = known_or_0(frame->offset);
    if (place < 0 || ARRAY_GROW(table->locations, count, table->location_room))
        return -ENOMEM;
    int64_t number =
        key_index_add(&table->location_index, (struct key){ { (uint64_t)place, ip, offset } });
    if (number == (int64_t)count)
        table->locations[number] = (struct frame_location){ (uint32_t)place, ip, offset };
    return number;
}

/* Neighbours share their outer frames. */
static bool frame_is(const struct report_frame *frame, const struct report_frame *other)
{
    return frame == other ||
           (frame->line == other->line && frame->ip == other->ip &&
            frame->offset == other->offset && is_native(frame) == is_native(other) &&
            strcmp(frame->display_name ?: "", other->display_name ?: "") == 0 &&
            strcmp(frame->filename_or_module ?: "", other->filename_or_module ?: "") == 0);
}

static int stack_write(struct frame_table *table, const struct report_stack *stack,
                       const struct report_stack *before, struct frame_stack *ret)
{
    size_t count = stack->frames.count, shared = before ? before->frames.count : 0;
    ret->locations = arena_take(&table->arena, count * sizeof *ret->locations);
    if (!ret->locations)
        return -ENOMEM;
    for (ret->count = 0; ret->count < count; ret->count++) {
        const struct report_frame *frame = stack->frames.items[ret->count];
        if (ret->count < shared && frame_is(frame, before->frames.items[ret->count])) {
            ret->locations[ret->count] = ret[-1].locations[ret->count];
            continue;
        }
        int64_t number = location_find(table, frame);
        if (number < 0)
            return -ENOMEM;
        ret->locations[ret->count] = (uint32_t)number;
    }
    return 0;
}

static int stacks_write(struct frame_table *table, const struct report_stack *stacks, size_t count,
                        struct frame_stack **ret)
{
    *ret = arena_take(&table->arena, count * sizeof **ret);
    if (!*ret)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        if (stack_write(table, &stacks[i], i ? &stacks[i - 1] : NULL, &(*ret)[i]))
            return -ENOMEM;
    return 0;
}

int frame_table_init(struct frame_table *table, const struct report *report)
{
    *table = (struct frame_table){ 0 };
    int error = intern_new(&table->texts);
    if (!error)
        error = stacks_write(table, report->combined_stacks.items, report->combined_stacks.count,
                             &table->stacks);
    if (!error)
        error = stacks_write(table, report->memory_stacks.items, report->memory_stacks.count,
                             &table->memory_stacks);
    if (error)
        frame_table_done(table);
    return error;
}

void frame_table_done(struct frame_table *table)
{
    key_index_done(&table->function_index);
    key_index_done(&table->place_index);
    key_index_done(&table->location_index);
    free(table->functions);
    free(table->places);
    free(table->locations);
    intern_free(table->texts);
    arena_done(&table->arena);
    *table = (struct frame_table){ 0 };
}
