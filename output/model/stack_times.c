#include "output/model/stack_times.h"

#include "output/model/array.h"
#include "output/model/places.h"
#include "output/model/stack_table.h"

#include <string.h>

static void time_join(struct stack_time *into, const struct stack_time *more)
{
    into->samples += more->samples;
    into->hits += more->hits;
    into->python_ns += more->python_ns;
    into->native_ns += more->native_ns;
    into->kernel_ns += more->kernel_ns;
    into->idle_ns += more->idle_ns;
    for (size_t i = 0; i < WAIT_KINDS; i++)
        into->wait_ns[i] += more->wait_ns[i];
}

static struct stack_time *time_find(struct stack_times *times, uint32_t stack, uint32_t thread)
{
    struct key key = { { stack, thread } };
    size_t count = times->index.count;
    if (count >= STACK_TIMES_MAX && key_index_find(&times->index, key) < 0)
        key.part[1] = NOTHING;
    if (ARRAY_GROW(times->items, count, times->room))
        return NULL;
    int64_t number = key_index_add(&times->index, key);
    if (number < 0)
        return NULL;
    struct stack_time *time = &times->items[number];
    if (number == (int64_t)count)
        *time = (struct stack_time){ .stack = stack, .thread = (uint32_t)key.part[1] };
    return time;
}

int stack_times_add(struct stack_times *times, uint32_t stack, uint32_t thread,
                    const struct charge *charge, uint64_t hits)
{
    if (!charge->samples && !charge->wait_ns && !charge_base_ns(charge))
        return 0;
    struct stack_time *time = time_find(times, stack, thread);
    if (!time)
        return -ENOMEM;
    struct stack_time more = {
        .samples = charge->samples,
        .hits = hits,
        .python_ns = charge->python_ns,
        .native_ns = charge->native_ns,
        .kernel_ns = charge->kernel_ns,
        .idle_ns = charge->idle_ns,
    };
    more.wait_ns[charge->wait_kind] = charge->wait_ns;
    time_join(time, &more);
    return 0;
}

int stack_times_move_threads(struct stack_times *times, const uint32_t *moved)
{
    size_t count = times->index.count;
    key_index_done(&times->index);
    for (size_t i = 0; i < count; i++) {
        struct stack_time time = times->items[i];
        time.thread = time.thread == NOTHING ? NOTHING : moved[time.thread];
        size_t kept = times->index.count;
        int64_t number = key_index_add(&times->index, (struct key){ { time.stack, time.thread } });
        if (number < 0)
            return -ENOMEM;
        if (number == (int64_t)kept)
            times->items[number] = time;
        else
            time_join(&times->items[number], &time);
    }
    return 0;
}

int stack_times_move(struct stack_times *times, const uint32_t *moved)
{
    size_t count = times->index.count, kept = 0;
    key_index_done(&times->index);
    for (size_t i = 0; i < count; i++) {
        struct stack_time time = times->items[i];
        time.stack = moved[time.stack];
        if (time.stack == STACK_NONE)
            continue;
        if (key_index_add(&times->index, (struct key){ { time.stack, time.thread } }) < 0)
            return -ENOMEM;
        times->items[kept++] = time;
    }
    return 0;
}

void stack_times_done(struct stack_times *times)
{
    key_index_done(&times->index);
    free(times->items);
    *times = (struct stack_times){ 0 };
}
