/* A memory event is counted: to the innermost shown line, to its function, and to its stack. */
#include "output/model/array.h"
#include "output/model/profile_state.h"

#include <math.h>

/* ---- stacks ---- */

/* Numbers of the places, outermost first; what did not change since the last event stands at the
 * beginning. */
static int stack_set(struct profile *profile, struct naming naming,
                     const struct memory_event *event)
{
    struct memory_account *account = &profile->memory;
    bool same = event->frame_count == account->depth;
    for (size_t i = 0; i < event->frame_count; i++) {
        const struct frame_event *frame = &event->frames[event->frame_count - 1 - i];
        if (i >= account->depth ||
            !place_is(place_at(profile, account->stack[i]), frame, &naming)) {
            same = false;
            account->depth = i < account->depth ? i : account->depth;
            int64_t place = places_find(&profile->places, frame, &naming);
            if (place < 0 || ARRAY_GROW(account->stack, i, account->stack_room) ||
                ARRAY_GROW(account->shown, i, account->shown_room))
                return -ENOMEM;
            account->stack[i] = (uint32_t)place;
        }
        naming_enter(&naming, place_at(profile, account->stack[i]));
    }
    account->depth = event->frame_count;
    account->node = same ? account->node : STACK_NONE;
    return 0;
}

static bool is_shown(const struct place *place)
{
    return place->kind == FRAME_PYTHON && place->line_tally != NOTHING;
}

static const struct place *stack_self(const struct profile *profile)
{
    const struct memory_account *account = &profile->memory;
    for (size_t i = account->depth; i-- > 0;)
        if (is_shown(place_at(profile, account->stack[i])))
            return place_at(profile, account->stack[i]);
    return NULL;
}

static int stacks_halve(struct profile *profile)
{
    struct stack_table *stacks = &profile->memory.stacks;
    size_t count = stacks->count;
    uint32_t *moved;
    int error = stack_table_halve(stacks, &moved);
    if (error)
        return error;
    for (size_t i = 0; i < profile->process_index.count; i++)
        if (profile->processes[i].memory)
            live_blocks_move_stacks(&profile->processes[i].memory->blocks, moved, count);
    free(moved);
    return 0;
}

static int stack_find(struct profile *profile)
{
    struct memory_account *account = &profile->memory;
    size_t count = 0;
    if (account->node != STACK_NONE && account->generation == account->stacks.generation)
        return 0;
    for (size_t i = 0; i < account->depth; i++)
        if (is_shown(place_at(profile, account->stack[i])))
            account->shown[count++] = account->stack[i];
    int error = stack_table_is_full(&account->stacks) ? stacks_halve(profile) : 0;
    int64_t node = error ? error : stack_table_find(&account->stacks, account->shown, count);
    if (node < 0)
        return (int)node;
    account->node = (uint32_t)node;
    account->generation = account->stacks.generation;
    return 0;
}

/* ---- events ---- */

static struct process_memory *memory_of(struct process_tally *process)
{
    if (!process->memory)
        process->memory = calloc(1, sizeof *process->memory);
    return process->memory;
}

/* The line's or function's part; NULL when out of memory. */
static struct memory_tally *memory_find(struct profile *profile, uint32_t number, uint32_t process)
{
    struct tally *tally = &profile->places.tallies[number];
    if (!tally->memory)
        tally->memory = calloc(1, sizeof *tally->memory);
    return tally->memory && !tally_add_process(tally, process) ? tally->memory : NULL;
}

/* What a stream says may be no number. */
static double weight_of(const struct memory_event *event)
{
    return event->weight_bytes > 0 ? fmin(event->weight_bytes, 0x1p60) : 0;
}

static void totals_add(struct memory_account *account, const struct memory_event *event,
                       bool is_hidden)
{
    double weight = weight_of(event);
    if (event->change == MEMORY_COPIED) {
        account->copied_bytes += weight;
        return;
    }
    account->allocated_bytes += weight;
    if (!event->frame_count)
        account->native_bytes += weight;
    else if (is_hidden)
        account->hidden_bytes += weight;
}

static int tallies_add(struct profile *profile, const struct memory_event *event, uint32_t process,
                       const uint32_t *tallies)
{
    for (size_t i = 0; i < 2; i++) {
        if (tallies[i] == NOTHING)
            continue;
        struct memory_tally *tally = memory_find(profile, tallies[i], process);
        if (!tally)
            return -ENOMEM;
        if (event->change == MEMORY_COPIED)
            tally->copied_bytes += weight_of(event);
        else
            memory_tally_add(tally, event->size_bytes, weight_of(event), event->python);
    }
    return 0;
}

static int block_add(struct profile *profile, const struct memory_event *event, uint32_t process,
                     const uint32_t *tallies)
{
    struct process_memory *memory = memory_of(&profile->processes[process]);
    int error = memory ? stack_find(profile) : -ENOMEM;
    if (error)
        return error;
    if (profile->memory.node != STACK_ROOT)
        profile->memory.stacks.nodes[profile->memory.node].hits +=
            (uint64_t)llround(weight_of(event));
    if (profile->processes[process].end_s > 0)
        return 0;
    const struct block_part part = {
        .weight_bytes = weight_of(event),
        .size_bytes = event->size_bytes,
        .born_ns = profile->memory.last_ns,
        .line = tallies[0],
        .function = tallies[1],
        .stack = profile->memory.node,
        .python = event->python,
    };
    return memory_follow(profile, memory, event->block, &part);
}

static int allocation_add(struct profile *profile, const struct memory_event *event,
                          uint32_t process)
{
    int error = stack_set(profile, profile->processes[process].naming, event);
    if (error)
        return error;
    const struct place *self = stack_self(profile);
    const uint32_t tallies[] = { self ? self->line_tally : NOTHING,
                                 self ? self->function_tally : NOTHING };
    totals_add(&profile->memory, event, !self);
    error = tallies_add(profile, event, process, tallies);
    return error || event->change == MEMORY_COPIED ? error
                                                   : block_add(profile, event, process, tallies);
}

static int event_add(struct profile *profile, const struct memory_event *event, uint32_t process)
{
    struct process_memory *memory = profile->processes[process].memory;
    uint64_t now_ns = profile->memory.last_ns;
    switch (event->change) {
    case MEMORY_ALLOCATED:
    case MEMORY_COPIED:
        return allocation_add(profile, event, process);
    case MEMORY_FREED:
        return memory ? memory_shrink(profile, memory, now_ns, event->block, 0) : 0;
    case MEMORY_RESIZED:
        return memory ? memory_shrink(profile, memory, now_ns, event->block, event->size_bytes) : 0;
    default:
        return memory ? memory_empty(profile, memory, now_ns) : 0;
    }
}

int profile_add_memory(struct profile *profile, const struct memory_event *event)
{
    struct profile_tap *tap = profile->settings.tap;
    if (profile->is_muted && (event->change == MEMORY_ALLOCATED || event->change == MEMORY_COPIED))
        return 0;
    int error = tap ? tap->memory(tap, event) : 0;
    if (error)
        return error;
    int64_t process = process_find(profile, event->pid, false);
    if (process < 0)
        return (int)process;
    profile->memory.events++;
    if (event->time_ns > profile->memory.last_ns)
        profile->memory.last_ns = event->time_ns;
    return event_add(profile, event, (uint32_t)process);
}

int profile_add_memory_loss(struct profile *profile, const struct memory_loss_event *loss)
{
    struct profile_tap *tap = profile->settings.tap;
    profile->memory.loss = *loss;
    return tap ? tap->memory_loss(tap, loss) : 0;
}
