/* What each thread did on the stacks of merged profiles: of equal stacks the sum. */
#include "output/model/merge_build.h"

#include "output/model/stack_times.h"
#include "sampler/base/error.h"

#include <stdlib.h>

static void time_add(struct report_stack_time *to, const struct report_stack_time *from)
{
    to->samples = merge_count(to->samples, from->samples);
    to->hits = merge_count(to->hits, from->hits);
    to->cpu_python_s += from->cpu_python_s;
    to->cpu_native_s += from->cpu_native_s;
    to->cpu_kernel_s += from->cpu_kernel_s;
    to->idle_s += from->idle_s;
    merge_waits(&to->wait_s, &from->wait_s);
}

/* The place of this thread's time on this stack; beyond the most, of all further threads'. */
static int64_t time_find(struct key_index *index, const struct report_stack_time *time)
{
    struct key key = { { (uint64_t)time->stack_index, (uint64_t)time->pid, (uint64_t)time->tid } };
    if (index->count >= STACK_TIMES_MAX && key_index_find(index, key) < 0)
        key.part[1] = key.part[2] = (uint64_t)-1;
    return key_index_add(index, key);
}

static int part_add(struct merge *merge, size_t part, const uint32_t *places,
                    struct key_index *index)
{
    const struct report *from = merge->parts[part].report;
    for (size_t i = 0; i < from->stack_times.count; i++) {
        struct report_stack_time time = from->stack_times.items[i];
        if (time.stack_index < 0 || (size_t)time.stack_index >= from->combined_stacks.count ||
            places[time.stack_index] >= merge->report->combined_stacks.count)
            continue;
        time.stack_index = places[time.stack_index];
        time.pid = time.tid < 0 ? -1 : merge_pid(merge, part, time.pid);
        int64_t at = time_find(index, &time);
        if (at < 0)
            return -ENOMEM;
        struct report_stack_time *sum = &merge->report->stack_times.items[at];
        sum->stack_index = (int64_t)index->keys[at].part[0];
        sum->pid = (int64_t)index->keys[at].part[1];
        sum->tid = (int64_t)index->keys[at].part[2];
        time_add(sum, &time);
    }
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

int merge_times(struct merge *merge, const uint32_t *places)
{
    struct key_index index = { 0 };
    struct report *report = merge->report;
    size_t all = 0;
    int error = 0;
    for (size_t i = 0; i < merge->count; i++)
        all += merge->parts[i].report->stack_times.count;
    report->stack_times.items = arena_take(&report->arena, all * sizeof *report->stack_times.items);
    if (!report->stack_times.items)
        return -ENOMEM;
    for (size_t i = 0; i < merge->count && !error; i++) {
        error = part_add(merge, i, places, &index);
        places += merge->parts[i].report->combined_stacks.count;
    }
    report->stack_times.count = index.count;
    if (index.count)
        qsort(report->stack_times.items, index.count, sizeof *report->stack_times.items,
              time_is_later);
    key_index_done(&index);
    return error;
}
