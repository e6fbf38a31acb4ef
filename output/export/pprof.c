/*
 * pprof's profile, zipped. A sample of it is what one thread did on one stack in one state (label
 * `state`: on a CPU, idle, or waiting for what), with the time in the kinds of time that it is of;
 * or what was allocated on a stack.
 */
#include "output/export/export.h"

#include "output/export/frame_table.h"
#include "output/export/ledger.h"
#include "output/export/message_stream.h"
#include "output/export/text_table.h"
#include "output/model/array.h"
#include "sampler/base/cleanup.h"

#include <pprof.pb-c.h>
#include <string.h>

enum kind {
    KIND_SAMPLES,
    KIND_CPU,
    KIND_IDLE,
    KIND_WAIT,
    KIND_WALL,
    KIND_ALLOCATED,
    KIND_LIVE,
    KIND_COUNT
};

static const struct {
    const char *type, *unit;
} kinds[KIND_COUNT] = {
    [KIND_SAMPLES] = { "samples", "count" },       [KIND_CPU] = { "cpu", "nanoseconds" },
    [KIND_IDLE] = { "idle", "nanoseconds" },       [KIND_WAIT] = { "wait", "nanoseconds" },
    [KIND_WALL] = { "wall", "nanoseconds" }, /* of the thread: CPU and waiting */
    [KIND_ALLOCATED] = { "alloc_space", "bytes" }, [KIND_LIVE] = { "inuse_space", "bytes" },
};

enum { LABELS_MAX = 5 };

#define NS_MILLIONTHS 1000000000000000u /* the nanoseconds of a second, in millionths of one */

struct pprof {
    struct message_stream stream;
    struct frame_table frames;
    struct ledger ledger;
    struct text_table texts;
    uint64_t *ids; /* of the stack that is being written */
    size_t id_room;
    size_t kind_count;
    bool is_short; /* of memory */
};

/* ---- texts ---- */

/* Of an address that the frame table keeps. */
static int64_t text_number(struct pprof *pprof, const char *text)
{
    return text_table_add(&pprof->texts, text);
}

static int64_t text_add(struct pprof *pprof, const char *text)
{
    return text_number(pprof, frame_table_text(&pprof->frames, text));
}

static void add(struct pprof *pprof, const Pprof__Profile *part)
{
    message_stream_add(&pprof->stream, &part->base);
}

static void texts_write(struct pprof *pprof)
{
    Pprof__Profile part = PPROF__PROFILE__INIT;
    part.n_text = pprof->texts.index.count;
    part.text = (char **)pprof->texts.texts;
    add(pprof, &part);
}

/* ---- the head ---- */

static void kinds_write(struct pprof *pprof)
{
    for (size_t i = 0; i < pprof->kind_count; i++) {
        Pprof__Profile part = PPROF__PROFILE__INIT;
        Pprof__Kind kind = PPROF__KIND__INIT;
        kind.type_text = text_add(pprof, kinds[i].type);
        kind.unit_text = text_add(pprof, kinds[i].unit);
        part.n_kind = 1;
        part.kind = &(Pprof__Kind *){ &kind };
        add(pprof, &part);
    }
}

static void head_write(struct pprof *pprof, const struct report *report)
{
    Pprof__Profile part = PPROF__PROFILE__INIT;
    Pprof__Kind kind = PPROF__KIND__INIT;
    uint64_t rate = ledger_millionths(report->sampling.rate_hz);
    kind.type_text = text_add(pprof, kinds[KIND_WALL].type);
    kind.unit_text = text_add(pprof, kinds[KIND_WALL].unit);
    part.time_ns = (int64_t)(1000 * ledger_moment_us(report->start_time_absolute));
    part.duration_ns = (int64_t)(1000 * ledger_millionths(report->elapsed_time_sec));
    part.default_kind_text = text_add(pprof, kinds[KIND_CPU].type);
    if (rate) {
        part.period_kind = &kind;
        part.period = (int64_t)(NS_MILLIONTHS / rate);
    }
    add(pprof, &part);
    for (size_t i = 0; i < report->notes.count; i++) {
        Pprof__Profile note = PPROF__PROFILE__INIT;
        int64_t text = text_add(pprof, report->notes.items[i]);
        note.n_comment_text = 1;
        note.comment_text = &text;
        add(pprof, &note);
    }
}

/* ---- frames ---- */

static void functions_write(struct pprof *pprof)
{
    for (size_t i = 0; i < pprof->frames.function_index.count; i++) {
        const struct frame_function *from = &pprof->frames.functions[i];
        Pprof__Profile part = PPROF__PROFILE__INIT;
        Pprof__Function function = PPROF__FUNCTION__INIT;
        function.id = i + 1;
        function.name_text = text_number(pprof, from->name);
        function.file_text = from->native ? 0 : text_number(pprof, from->file);
        part.n_function = 1;
        part.function = &(Pprof__Function *){ &function };
        add(pprof, &part);
    }
}

/* The id of the module, which is written when it first comes. */
static uint64_t mapping_find(struct pprof *pprof, struct key_index *mappings, const char *module)
{
    size_t count = mappings->count;
    int64_t number = key_index_add(mappings, (struct key){ { (uintptr_t)module } });
    pprof->is_short |= number < 0;
    if (number == (int64_t)count) {
        Pprof__Profile part = PPROF__PROFILE__INIT;
        Pprof__Mapping mapping = PPROF__MAPPING__INIT;
        mapping.id = (uint64_t)number + 1;
        mapping.file_text = text_number(pprof, module);
        mapping.has_functions = true;
        part.n_mapping = 1;
        part.mapping = &(Pprof__Mapping *){ &mapping };
        add(pprof, &part);
    }
    return (uint64_t)number + 1;
}

/* The first mapping is the program, by whose name pprof calls the profile. */
static void locations_write(struct pprof *pprof, const struct report *report)
{
    struct key_index mappings = { 0 };
    const struct report_process *process = report->processes.items;
    const char *program =
        report->processes.count ? frame_table_text(&pprof->frames, process->executable) : "";
    pprof->is_short |= !program;
    if (program && *program)
        mapping_find(pprof, &mappings, program);
    for (uint32_t i = 0; i < pprof->frames.location_index.count; i++) {
        const struct frame_location *from = &pprof->frames.locations[i];
        const struct frame_place *place = &pprof->frames.places[from->place];
        const struct frame_function *function = &pprof->frames.functions[place->function];
        Pprof__Profile part = PPROF__PROFILE__INIT;
        Pprof__Location location = PPROF__LOCATION__INIT;
        Pprof__Line line = PPROF__LINE__INIT;
        line.function = place->function + 1;
        line.line = place->line;
        location.id = i + 1;
        location.address = from->ip;
        if (function->native && *function->file)
            location.mapping = mapping_find(pprof, &mappings, function->file);
        location.n_line = 1;
        location.line = &(Pprof__Line *){ &line };
        part.n_location = 1;
        part.location = &(Pprof__Location *){ &location };
        add(pprof, &part);
    }
    key_index_done(&mappings);
}

/* ---- samples ---- */

static void sample_write(struct pprof *pprof, const struct frame_stack *stack, int64_t *values,
                         Pprof__Label **labels, size_t label_count)
{
    Pprof__Profile part = PPROF__PROFILE__INIT;
    Pprof__Sample sample = PPROF__SAMPLE__INIT;
    while (pprof->id_room < stack->count)
        if (ARRAY_GROW(pprof->ids, pprof->id_room, pprof->id_room)) {
            pprof->is_short = true;
            return;
        }
    for (size_t i = 0; i < stack->count; i++)
        pprof->ids[i] = stack->locations[stack->count - 1 - i] + 1;
    sample.n_location = stack->count;
    sample.location = pprof->ids;
    sample.n_value = pprof->kind_count;
    sample.value = values;
    sample.n_label = label_count;
    sample.label = labels;
    part.n_sample = 1;
    part.sample = &(Pprof__Sample *){ &sample };
    add(pprof, &part);
}

struct labels {
    Pprof__Label items[LABELS_MAX], *pointers[LABELS_MAX];
    size_t count;
};

static void label_add(struct pprof *pprof, struct labels *labels, const char *key, int64_t text,
                      int64_t number)
{
    Pprof__Label *label = &labels->items[labels->count];
    pprof__label__init(label);
    label->key_text = text_add(pprof, key);
    label->value_text = text;
    label->number = number;
    labels->pointers[labels->count++] = label;
}

static void thread_labels(struct pprof *pprof, const struct ledger_thread *thread,
                          struct labels *ret)
{
    ret->count = 0;
    if (thread->pid < 0)
        return;
    AUTO_FREE char *command = ledger_command(thread);
    pprof->is_short |= !command;
    label_add(pprof, ret, "process", text_add(pprof, command), 0);
    label_add(pprof, ret, "pid", 0, thread->pid);
    label_add(pprof, ret, "thread", text_add(pprof, thread->name), 0);
    label_add(pprof, ret, "tid", 0, thread->tid);
}

/* In which kinds of time a state counts. */
static void values_fill(enum ledger_state state, uint64_t us, int64_t *values)
{
    enum kind kind = state < STATE_IDLE ? KIND_CPU : state == STATE_IDLE ? KIND_IDLE : KIND_WAIT;
    values[kind] = (int64_t)(1000 * us);
    if (state != STATE_IDLE)
        values[KIND_WALL] = values[kind];
}

/* The hits go to the state that comes first. */
static void entry_write(struct pprof *pprof, const struct ledger_entry *entry,
                        const struct labels *of_thread)
{
    const struct frame_stack *stack = &pprof->frames.stacks[entry->stack];
    uint64_t hits = entry->hits;
    for (size_t state = 0; state < STATE_COUNT; state++) {
        struct labels labels = *of_thread;
        int64_t values[KIND_COUNT] = { (int64_t)hits };
        if (!entry->us[state])
            continue;
        for (size_t i = 0; i < labels.count; i++)
            labels.pointers[i] = &labels.items[i];
        label_add(pprof, &labels, "state", text_add(pprof, ledger_state_name(state)), 0);
        values_fill(state, entry->us[state], values);
        sample_write(pprof, stack, values, labels.pointers, labels.count);
        hits = 0;
    }
    int64_t values[KIND_COUNT] = { (int64_t)hits };
    if (hits)
        sample_write(pprof, stack, values, (Pprof__Label **)of_thread->pointers, of_thread->count);
}

static void samples_write(struct pprof *pprof, const struct report *report)
{
    const struct ledger *ledger = &pprof->ledger;
    for (size_t i = 0; i < ledger->thread_index.count; i++) {
        const struct ledger_thread *thread = &ledger->threads[i];
        struct labels labels;
        if (thread->entry_count)
            thread_labels(pprof, thread, &labels);
        for (size_t n = 0; n < thread->entry_count; n++)
            entry_write(pprof, &ledger->entries[thread->first_entry + n], &labels);
    }
    for (size_t i = 0; i < report->memory_stacks.count; i++) {
        int64_t values[KIND_COUNT] = { 0 };
        values[KIND_ALLOCATED] = (int64_t)ledger_bytes(report->memory_stacks.items[i].megabytes);
        values[KIND_LIVE] = (int64_t)ledger_bytes(report_stack_live_mb(report, i));
        if (values[KIND_ALLOCATED])
            sample_write(pprof, &pprof->frames.memory_stacks[i], values, NULL, 0);
    }
}

static int profile_write(struct pprof *pprof, const struct report *report)
{
    text_add(pprof, "");
    kinds_write(pprof);
    head_write(pprof, report);
    functions_write(pprof);
    locations_write(pprof, report);
    samples_write(pprof, report);
    texts_write(pprof);
    return pprof->is_short || pprof->texts.is_short ? -ENOMEM : 0;
}

static size_t kinds_count(const struct report *report)
{
    if (!report->memory)
        return KIND_ALLOCATED;
    return report->memory_stacks_live_mb.count ? KIND_COUNT : KIND_LIVE;
}

int pprof_write(const struct report *report, FILE *into)
{
    struct pprof pprof = { .kind_count = kinds_count(report) };
    int error = frame_table_init(&pprof.frames, report);
    if (!error)
        error = ledger_init(&pprof.ledger, report);
    message_stream_init(&pprof.stream, into, true);
    if (!error)
        error = profile_write(&pprof, report);
    int ended = message_stream_end(&pprof.stream);
    frame_table_done(&pprof.frames);
    ledger_done(&pprof.ledger);
    text_table_done(&pprof.texts);
    free(pprof.ids);
    return error ? error : ended;
}
