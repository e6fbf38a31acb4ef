/* Perfetto's heap profile, a packet for each thing it is made of. */
#include "output/export/perfetto_trace.h"

#include "output/model/array.h"

#include <stdlib.h>
#include <string.h>

struct heap {
    struct perfetto *perfetto;
    struct key_index texts; /* of addresses that the frame table keeps; an iid is 1 + the number */
    uint64_t index;
    uint64_t *ids;
    size_t id_room;
};

static void heap_add(struct heap *heap, Perfetto__ProfilePacket *part, bool is_last)
{
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    PERFETTO_SET(*part, index, heap->index++);
    PERFETTO_SET(*part, continued, !is_last);
    packet.profile_packet = part;
    perfetto_add(heap->perfetto, SEQUENCE_MEMORY, &packet);
}

/* The text's iid; a file is a mapping of the same iid, because every frame has to have one. */
static uint64_t text_find(struct heap *heap, const char *text)
{
    size_t count = heap->texts.count;
    int64_t number = key_index_add(&heap->texts, (struct key){ { (uintptr_t)text } });
    uint64_t iid = (uint64_t)number + 1;
    heap->perfetto->is_short |= number < 0;
    if (number != (int64_t)count)
        return iid;
    Perfetto__ProfilePacket part = PERFETTO__PROFILE_PACKET__INIT;
    Perfetto__InternedText interned = PERFETTO__INTERNED_TEXT__INIT;
    Perfetto__Mapping mapping = PERFETTO__MAPPING__INIT;
    PERFETTO_SET(interned, iid, iid);
    interned.has_text = true;
    interned.text = (ProtobufCBinaryData){ strlen(text), (uint8_t *)(uintptr_t)text };
    PERFETTO_SET(mapping, iid, iid);
    mapping.n_path_text_ids = 1;
    mapping.path_text_ids = &iid;
    part.n_strings = part.n_mappings = 1;
    part.strings = &(Perfetto__InternedText *){ &interned };
    part.mappings = &(Perfetto__Mapping *){ &mapping };
    heap_add(heap, &part, false);
    return iid;
}

static void frames_write(struct heap *heap)
{
    const struct frame_table *table = &heap->perfetto->frames;
    for (uint32_t i = 0; i < table->location_index.count; i++) {
        const struct frame_function *function = frame_function_at(table, i);
        Perfetto__ProfilePacket part = PERFETTO__PROFILE_PACKET__INIT;
        Perfetto__Frame frame = PERFETTO__FRAME__INIT;
        PERFETTO_SET(frame, iid, i + 1);
        PERFETTO_SET(frame, function_name_id, text_find(heap, function->name));
        PERFETTO_SET(frame, mapping_id, text_find(heap, function->file));
        PERFETTO_SET(frame, rel_pc, table->locations[i].offset);
        part.n_frames = 1;
        part.frames = &(Perfetto__Frame *){ &frame };
        heap_add(heap, &part, false);
    }
}

static void stack_write(struct heap *heap, uint64_t iid, const struct frame_stack *stack)
{
    Perfetto__ProfilePacket part = PERFETTO__PROFILE_PACKET__INIT;
    Perfetto__Callstack callstack = PERFETTO__CALLSTACK__INIT;
    while (heap->id_room < stack->count)
        if (ARRAY_GROW(heap->ids, heap->id_room, heap->id_room)) {
            heap->perfetto->is_short = true;
            return;
        }
    for (size_t i = 0; i < stack->count; i++)
        heap->ids[i] = stack->locations[i] + 1;
    PERFETTO_SET(callstack, iid, iid);
    callstack.n_frame_ids = stack->count;
    callstack.frame_ids = heap->ids;
    part.n_callstacks = 1;
    part.callstacks = &(Perfetto__Callstack *){ &callstack };
    heap_add(heap, &part, false);
}

/* What is live is what was allocated and not freed, and nothing else tells it. */
static void sample_write(struct heap *heap, const struct report *report, size_t stack)
{
    Perfetto__ProfilePacket part = PERFETTO__PROFILE_PACKET__INIT;
    Perfetto__ProcessHeapSamples dump = PERFETTO__PROCESS_HEAP_SAMPLES__INIT;
    Perfetto__HeapSample sample = PERFETTO__HEAP_SAMPLE__INIT;
    uint64_t end_ns = 1000 * ledger_millionths(report->elapsed_time_sec);
    int64_t window = report->sampling.allocation_window;
    uint64_t bytes = ledger_bytes(report->memory_stacks.items[stack].megabytes);
    PERFETTO_SET(sample, callstack_id, stack + 1);
    PERFETTO_SET(sample, self_allocated, bytes);
    if (report->memory_stacks_live_mb.count)
        PERFETTO_SET(sample, self_freed, bytes - ledger_bytes(report_stack_live_mb(report, stack)));
    PERFETTO_SET(sample, timestamp, end_ns);
    PERFETTO_SET(dump, pid, (uint64_t)report->processes.items[0].pid);
    PERFETTO_SET(dump, timestamp, end_ns);
    PERFETTO_SET(dump, sampling_interval_bytes, window > 0 ? (uint64_t)window : 1);
    dump.heap_name = "allocated";
    dump.n_samples = 1;
    dump.samples = &(Perfetto__HeapSample *){ &sample };
    part.n_process_dumps = 1;
    part.process_dumps = &(Perfetto__ProcessHeapSamples *){ &dump };
    heap_add(heap, &part, false);
}

/* Stacks of memory do not tell their process: they are all shown with the first one. */
void perfetto_memory_write(struct perfetto *perfetto, const struct report *report)
{
    struct heap heap = { .perfetto = perfetto };
    if (!report->memory_stacks.count || !report->processes.count)
        return;
    frames_write(&heap);
    for (size_t i = 0; i < report->memory_stacks.count; i++) {
        stack_write(&heap, i + 1, &perfetto->frames.memory_stacks[i]);
        sample_write(&heap, report, i);
    }
    Perfetto__ProfilePacket last = PERFETTO__PROFILE_PACKET__INIT;
    heap_add(&heap, &last, true);
    key_index_done(&heap.texts);
    free(heap.ids);
}
