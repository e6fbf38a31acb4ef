/*
 * A Perfetto trace: the stack of each thread over time, a slice a frame, the innermost one with how
 * many samples it stands for and what they did; the memory of all processes over time, and what was
 * allocated on which stack.
 */
#include "output/export/export.h"

#include "output/export/perfetto_trace.h"
#include "sampler/base/cleanup.h"
#include "sampler/base/error.h"

#include <inttypes.h>
#include <string.h>

/* Numbers of clocks and flags, as Perfetto's protocol has them. */
enum { CLOCK_IS_REALTIME = 1, CLOCK_IS_BOOTTIME = 6 };
enum { FLAG_NUMBERS_BEGIN = 1, FLAG_NUMBERS_NEEDED = 2 };

/* A track has a number of its own; threads are 2, 4, … and the process of a thread stands between.
 */
enum { TRACK_NOTES = 1 };
#define TRACK_MEMORY (UINT64_C(1) << 62)

enum { CATEGORY_PYTHON = 1, CATEGORY_NATIVE };

/* Names of what the innermost slice tells: samples, then microseconds by state. */
enum { DETAIL_SAMPLES = 1, DETAIL_STATES, DETAILS = DETAIL_STATES + STATE_COUNT };

static uint64_t thread_track(size_t number)
{
    return 2 * (uint64_t)number + 2;
}

void perfetto_add(struct perfetto *perfetto, enum perfetto_sequence sequence,
                  Perfetto__TracePacket *packet)
{
    Perfetto__Trace trace = PERFETTO__TRACE__INIT;
    PERFETTO_SET(*packet, trusted_packet_sequence_id, sequence);
    if (!packet->has_sequence_flags)
        PERFETTO_SET(*packet, sequence_flags, FLAG_NUMBERS_NEEDED);
    trace.n_packet = 1;
    trace.packet = &packet;
    message_stream_add(&perfetto->stream, &trace.base);
}

/* ---- the head ---- */

/* Time begins with the profiling, at this moment of the calendar. */
static void clocks_write(struct perfetto *perfetto, const struct report *report,
                         enum perfetto_sequence sequence)
{
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    Perfetto__ClockSnapshot snapshot = PERFETTO__CLOCK_SNAPSHOT__INIT;
    Perfetto__Clock real = PERFETTO__CLOCK__INIT, boot = PERFETTO__CLOCK__INIT;
    PERFETTO_SET(real, clock_id, CLOCK_IS_REALTIME);
    PERFETTO_SET(real, timestamp, 1000 * ledger_moment_us(report->start_time_absolute));
    PERFETTO_SET(boot, clock_id, CLOCK_IS_BOOTTIME);
    PERFETTO_SET(boot, timestamp, 0);
    snapshot.n_clocks = 2;
    snapshot.clocks = (Perfetto__Clock *[]){ &boot, &real };
    packet.clock_snapshot = &snapshot;
    PERFETTO_SET(packet, sequence_flags, FLAG_NUMBERS_BEGIN);
    perfetto_add(perfetto, sequence, &packet);
}

static void interned_add(struct perfetto *perfetto, Perfetto__InternedData *data)
{
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    packet.interned_data = data;
    perfetto_add(perfetto, SEQUENCE_EVENTS, &packet);
}

static void names_write(struct perfetto *perfetto)
{
    static const char *const categories[] = { "python", "native" };
    for (size_t i = 0; i < 2; i++) {
        Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
        Perfetto__Name name = PERFETTO__NAME__INIT;
        PERFETTO_SET(name, iid, CATEGORY_PYTHON + i);
        name.name = (char *)(uintptr_t)categories[i];
        data.n_event_categories = 1;
        data.event_categories = &(Perfetto__Name *){ &name };
        interned_add(perfetto, &data);
    }
    for (size_t i = DETAIL_SAMPLES; i < DETAILS; i++) {
        Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
        Perfetto__Name name = PERFETTO__NAME__INIT;
        char text[32] = "samples";
        if (i >= DETAIL_STATES)
            snprintf(text, sizeof text, "%s_us", ledger_state_name(i - DETAIL_STATES));
        PERFETTO_SET(name, iid, i);
        name.name = text;
        data.n_debug_annotation_names = 1;
        data.debug_annotation_names = &(Perfetto__Name *){ &name };
        interned_add(perfetto, &data);
    }
}

static void functions_write(struct perfetto *perfetto)
{
    const struct frame_table *table = &perfetto->frames;
    for (size_t i = 0; i < table->function_index.count; i++) {
        Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
        Perfetto__Name name = PERFETTO__NAME__INIT;
        PERFETTO_SET(name, iid, i + 1);
        name.name = (char *)(uintptr_t)table->functions[i].name;
        data.n_event_names = 1;
        data.event_names = &(Perfetto__Name *){ &name };
        interned_add(perfetto, &data);
    }
    for (size_t i = 0; i < table->place_index.count; i++) {
        const struct frame_place *place = &table->places[i];
        const struct frame_function *function = &table->functions[place->function];
        Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
        Perfetto__SourceLocation location = PERFETTO__SOURCE_LOCATION__INIT;
        PERFETTO_SET(location, iid, i + 1);
        location.file_name = (char *)(uintptr_t)function->file;
        location.function_name = (char *)(uintptr_t)function->name;
        PERFETTO_SET(location, line_number, (uint32_t)place->line);
        data.n_source_locations = 1;
        data.source_locations = &(Perfetto__SourceLocation *){ &location };
        interned_add(perfetto, &data);
    }
}

/* ---- tracks ---- */

static void track_add(struct perfetto *perfetto, Perfetto__TrackDescriptor *track, uint64_t uuid)
{
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    PERFETTO_SET(*track, uuid, uuid);
    packet.track_descriptor = track;
    perfetto_add(perfetto, SEQUENCE_EVENTS, &packet);
}

static const char *text_keep(struct perfetto *perfetto, char *text)
{
    const char *kept = text ? frame_table_text(&perfetto->frames, text) : NULL;
    perfetto->is_short |= !kept;
    return kept ?: "";
}

static void process_write(struct perfetto *perfetto, size_t number)
{
    const struct ledger_thread *thread = &perfetto->ledger.threads[number];
    Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
    Perfetto__ProcessDescriptor process = PERFETTO__PROCESS_DESCRIPTOR__INIT;
    AUTO_FREE char *command = ledger_command(thread);
    PERFETTO_SET(process, pid, (int32_t)thread->pid);
    process.process_name = (char *)(uintptr_t)text_keep(perfetto, command);
    track.process = &process;
    track_add(perfetto, &track, thread_track(number) + 1);
}

static void thread_write(struct perfetto *perfetto, size_t number)
{
    const struct ledger_thread *thread = &perfetto->ledger.threads[number];
    Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
    Perfetto__ThreadDescriptor descriptor = PERFETTO__THREAD_DESCRIPTOR__INIT;
    PERFETTO_SET(descriptor, pid, (int32_t)thread->pid);
    PERFETTO_SET(descriptor, tid, (int32_t)thread->tid);
    descriptor.thread_name =
        (char *)(uintptr_t)text_keep(perfetto, (char *)(uintptr_t)thread->name);
    if (thread->pid >= 0)
        track.thread = &descriptor;
    else
        track.name = "all threads";
    track_add(perfetto, &track, thread_track(number));
}

/* ---- slices ---- */

static void event_add(struct perfetto *perfetto, Perfetto__TrackEvent *event,
                      Perfetto__TrackEvent__Type type, uint64_t track, uint64_t time_ns)
{
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    PERFETTO_SET(*event, type, type);
    PERFETTO_SET(*event, track_uuid, track);
    PERFETTO_SET(packet, timestamp, time_ns);
    packet.track_event = event;
    perfetto_add(perfetto, SEQUENCE_EVENTS, &packet);
}

struct details {
    Perfetto__DebugAnnotation items[DETAILS], *pointers[DETAILS];
    size_t count;
};

static void detail_add(struct details *details, uint64_t name, uint64_t value)
{
    Perfetto__DebugAnnotation *detail = &details->items[details->count];
    if (!value)
        return;
    perfetto__debug_annotation__init(detail);
    PERFETTO_SET(*detail, name_iid, name);
    PERFETTO_SET(*detail, uint_value, value);
    details->pointers[details->count++] = detail;
}

static void run_details(const struct perfetto *perfetto, const struct ledger_run *run,
                        struct details *ret)
{
    const struct ledger_entry *entry = &perfetto->ledger.entries[run->entry];
    ret->count = 0;
    detail_add(ret, DETAIL_SAMPLES, run->samples);
    for (size_t i = 0; i < STATE_COUNT; i++)
        detail_add(ret, DETAIL_STATES + i, ledger_part(&perfetto->ledger, run, entry->us[i]));
}

static void slice_begin(struct perfetto *perfetto, uint64_t track, const struct ledger_run *run,
                        uint32_t place, struct details *details)
{
    const struct frame_place *at = &perfetto->frames.places[place];
    bool native = perfetto->frames.functions[at->function].native;
    uint64_t category = native ? CATEGORY_NATIVE : CATEGORY_PYTHON;
    Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;
    event.n_category_iids = 1;
    event.category_iids = &category;
    PERFETTO_SET(event, name_iid, at->function + 1);
    PERFETTO_SET(event, source_location_iid, place + 1);
    if (details) {
        event.n_debug_annotations = details->count;
        event.debug_annotations = details->pointers;
    }
    event_add(perfetto, &event, PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN, track,
              1000 * run->start_us);
}

static void slices_end(struct perfetto *perfetto, uint64_t track, size_t count, uint64_t time_us)
{
    while (count-- > 0) {
        Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;
        event_add(perfetto, &event, PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_END, track,
                  1000 * time_us);
    }
}

static uint32_t place_at_depth(const struct perfetto *perfetto, const struct frame_stack *stack,
                               size_t depth)
{
    return perfetto->frames.locations[stack->locations[depth]].place;
}

/* Frames that go on keep their slices, but for the innermost one, which tells of its run alone. */
static size_t shared_depth(const struct perfetto *perfetto, const struct frame_stack *before,
                           const struct frame_stack *stack)
{
    size_t depth = 0;
    while (depth + 1 < stack->count && depth + 1 < before->count &&
           place_at_depth(perfetto, before, depth) == place_at_depth(perfetto, stack, depth))
        depth++;
    return depth;
}

static void slices_write(struct perfetto *perfetto, size_t number)
{
    const struct ledger_thread *thread = &perfetto->ledger.threads[number];
    static const struct frame_stack nothing = { NULL, 0 };
    const struct frame_stack *before = &nothing;
    uint64_t track = thread_track(number);
    for (size_t i = 0; i < thread->run_count; i++) {
        const struct ledger_run *run = &perfetto->ledger.runs[thread->first_run + i];
        uint32_t number_of_stack = perfetto->ledger.entries[run->entry].stack;
        const struct frame_stack *stack = &perfetto->frames.stacks[number_of_stack];
        size_t shared = shared_depth(perfetto, before, stack);
        struct details details;
        run_details(perfetto, run, &details);
        slices_end(perfetto, track, before->count - shared, run->start_us);
        for (size_t depth = shared; depth < stack->count; depth++)
            slice_begin(perfetto, track, run, place_at_depth(perfetto, stack, depth),
                        depth + 1 == stack->count ? &details : NULL);
        before = stack;
    }
    slices_end(perfetto, track, before->count, thread->end_us);
}

/* ---- memory over time, and notes ---- */

static void footprint_write(struct perfetto *perfetto, const struct report *report)
{
    Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
    Perfetto__CounterDescriptor counter = PERFETTO__COUNTER_DESCRIPTOR__INIT;
    if (!report->samples.count)
        return;
    PERFETTO_SET(counter, unit, PERFETTO__COUNTER_DESCRIPTOR__UNIT__UNIT_SIZE_BYTES);
    track.name = "memory";
    track.counter = &counter;
    track_add(perfetto, &track, TRACK_MEMORY);
    for (size_t i = 0; i < report->samples.count; i++) {
        const struct point *point = &report->samples.items[i];
        Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;
        PERFETTO_SET(event, counter_value, (int64_t)ledger_bytes(point->megabytes));
        event_add(perfetto, &event, PERFETTO__TRACK_EVENT__TYPE__TYPE_COUNTER, TRACK_MEMORY,
                  ledger_point_ns(point));
    }
}

static void note_add(struct perfetto *perfetto, const char *note)
{
    Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;
    event.name = (char *)(uintptr_t)text_keep(perfetto, (char *)(uintptr_t)note);
    event_add(perfetto, &event, PERFETTO__TRACK_EVENT__TYPE__TYPE_INSTANT, TRACK_NOTES, 0);
}

/* Beside the report's own notes: what has no place on a line of time. */
static void notes_write(struct perfetto *perfetto, const struct report *report)
{
    Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
    const struct ledger *ledger = &perfetto->ledger;
    uint64_t untimed = 0;
    char note[128];
    for (size_t i = 0; i < ledger->entry_count; i++)
        if (!ledger->entries[i].run_samples)
            untimed += ledger->entries[i].samples;
    if (!untimed && !report->notes.count)
        return;
    track.name = "notes";
    track_add(perfetto, &track, TRACK_NOTES);
    for (size_t i = 0; i < report->notes.count; i++)
        note_add(perfetto, report->notes.items[i]);
    snprintf(note, sizeof note,
             "of %" PRIu64 " samples it is not known when they were taken: they are not here",
             untimed);
    if (untimed)
        note_add(perfetto, note);
}

static int trace_write(struct perfetto *perfetto, const struct report *report)
{
    clocks_write(perfetto, report, SEQUENCE_EVENTS);
    names_write(perfetto);
    functions_write(perfetto);
    for (size_t i = 0; i < perfetto->ledger.thread_index.count; i++) {
        const struct ledger_thread *thread = &perfetto->ledger.threads[i];
        if (thread->is_first && thread->pid >= 0)
            process_write(perfetto, i);
        if (thread->pid >= 0 || thread->run_count)
            thread_write(perfetto, i);
        slices_write(perfetto, i);
    }
    footprint_write(perfetto, report);
    notes_write(perfetto, report);
    clocks_write(perfetto, report, SEQUENCE_MEMORY);
    perfetto_memory_write(perfetto, report);
    return perfetto->is_short ? -ENOMEM : 0;
}

int perfetto_write(const struct report *report, FILE *into)
{
    struct perfetto perfetto = { .is_short = false };
    int error = frame_table_init(&perfetto.frames, report);
    if (!error)
        error = ledger_init(&perfetto.ledger, report);
    message_stream_init(&perfetto.stream, into, false);
    if (!error)
        error = trace_write(&perfetto, report);
    int ended = message_stream_end(&perfetto.stream);
    frame_table_done(&perfetto.frames);
    ledger_done(&perfetto.ledger);
    return error ? error : ended;
}
