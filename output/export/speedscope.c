/*
 * speedscope's own file format (https://www.speedscope.app/file-format-schema.json): for each
 * thread one profile of CPU time, one of waiting and one of both, in seconds and in the order in
 * which it happened; and one of memory in bytes.
 */
#define _GNU_SOURCE /* asprintf */
#include "output/export/export.h"

#include "output/export/frame_table.h"
#include "output/export/json_document.h"
#include "output/export/ledger.h"
#include "sampler/base/cleanup.h"
#include "sampler/base/error.h"

#include <inttypes.h>
#include <string.h>

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

struct speedscope {
    struct json_document json;
    struct frame_table frames;
    struct ledger ledger;
    yyjson_mut_val *profiles;
    const char **stacks, **memory_stacks; /* their frames as JSON; NULL: not asked for yet */
};

/* What of an entry a profile is of. */
typedef uint64_t amount_us(const struct ledger_entry *entry);

static void frames_write(struct speedscope *speedscope)
{
    struct json_document *json = &speedscope->json;
    const struct frame_table *table = &speedscope->frames;
    yyjson_mut_val *list = json_list(json, json_object(json, json->root, "shared"), "frames");
    for (size_t i = 0; i < table->place_index.count; i++) {
        const struct frame_place *place = &table->places[i];
        const struct frame_function *function = &table->functions[place->function];
        yyjson_mut_val *frame = json_item(json, list);
        yyjson_mut_obj_add_str(json->doc, frame, "name", function->name);
        if (*function->file)
            yyjson_mut_obj_add_str(json->doc, frame, "file", function->file);
        if (place->line)
            yyjson_mut_obj_add_int(json->doc, frame, "line", place->line);
    }
}

/* One text for all samples of a stack: a long timeline has many of each. */
static const char *stack_text(struct speedscope *speedscope, const struct frame_stack *stack)
{
    enum { NUMBER_SIZE = 12 };
    char *text = arena_take(&speedscope->frames.arena, NUMBER_SIZE * stack->count + 3);
    char *to = text;
    if (!text) {
        speedscope->json.is_short = true;
        return "[]";
    }
    *to++ = '[';
    for (size_t i = 0; i < stack->count; i++) {
        const struct frame_location *location = &speedscope->frames.locations[stack->locations[i]];
        to += sprintf(to, i ? ",%" PRIu32 : "%" PRIu32, location->place);
    }
    strcpy(to, "]");
    return text;
}

/* Its amounts are whole; how many of them are one of the unit. */
struct sampled {
    yyjson_mut_val *profile, *samples, *weights;
    double scale;
    uint64_t all;
};

/* `name` in two parts. */
static struct sampled sampled_begin(struct speedscope *speedscope, const char *title,
                                    const char *what, const char *unit, double scale)
{
    struct json_document *json = &speedscope->json;
    yyjson_mut_val *profile = json_item(json, speedscope->profiles);
    char *text = NULL;
    const char *name = asprintf(&text, "%s%s", title, what) < 0
                           ? NULL
                           : frame_table_text(&speedscope->frames, text);
    json->is_short |= !name;
    yyjson_mut_obj_add_str(json->doc, profile, "type", "sampled");
    yyjson_mut_obj_add_str(json->doc, profile, "name", name ?: "");
    yyjson_mut_obj_add_str(json->doc, profile, "unit", unit);
    free(text);
    return (struct sampled){ profile, json_list(json, profile, "samples"),
                             json_list(json, profile, "weights"), scale, 0 };
}

static void sampled_add(struct speedscope *speedscope, struct sampled *sampled, const char **text,
                        const struct frame_stack *stack, uint64_t amount)
{
    yyjson_mut_doc *doc = speedscope->json.doc;
    if (!amount)
        return;
    if (!*text)
        *text = stack_text(speedscope, stack);
    yyjson_mut_arr_append(sampled->samples, yyjson_mut_raw(doc, *text));
    yyjson_mut_arr_add_real(doc, sampled->weights, (double)amount / sampled->scale);
    sampled->all += amount;
}

static void sampled_end(struct speedscope *speedscope, const struct sampled *sampled)
{
    yyjson_mut_doc *doc = speedscope->json.doc;
    yyjson_mut_obj_add_int(doc, sampled->profile, "startValue", 0);
    yyjson_mut_obj_add_real(doc, sampled->profile, "endValue",
                            (double)sampled->all / sampled->scale);
}

static void entry_write(struct speedscope *speedscope, struct sampled *sampled,
                        const struct ledger_entry *entry, uint64_t us)
{
    sampled_add(speedscope, sampled, &speedscope->stacks[entry->stack],
                &speedscope->frames.stacks[entry->stack], us);
}

static uint64_t thread_sum(const struct ledger *ledger, const struct ledger_thread *thread,
                           amount_us *amount)
{
    uint64_t all = 0;
    for (size_t i = 0; i < thread->entry_count; i++)
        all += amount(&ledger->entries[thread->first_entry + i]);
    return all;
}

/* What happened nobody knows when, comes last. */
static void thread_write(struct speedscope *speedscope, const struct ledger_thread *thread,
                         const char *what, amount_us *amount)
{
    const struct ledger *ledger = &speedscope->ledger;
    if (!thread_sum(ledger, thread, amount))
        return;
    AUTO_FREE char *title = ledger_title(thread);
    speedscope->json.is_short |= !title;
    struct sampled sampled = sampled_begin(speedscope, title ?: "", what, "seconds", 1e6);
    for (size_t i = 0; i < thread->run_count; i++) {
        const struct ledger_run *run = &ledger->runs[thread->first_run + i];
        const struct ledger_entry *entry = &ledger->entries[run->entry];
        entry_write(speedscope, &sampled, entry, ledger_part(ledger, run, amount(entry)));
    }
    for (size_t i = 0; i < thread->entry_count; i++) {
        const struct ledger_entry *entry = &ledger->entries[thread->first_entry + i];
        if (!entry->run_samples)
            entry_write(speedscope, &sampled, entry, amount(entry));
    }
    sampled_end(speedscope, &sampled);
}

static double allocated_mb(const struct report *report, size_t stack)
{
    return report->memory_stacks.items[stack].megabytes;
}

static void memory_write(struct speedscope *speedscope, const struct report *report,
                         const char *title, double (*megabytes)(const struct report *, size_t))
{
    struct sampled sampled = sampled_begin(speedscope, title, "", "bytes", 1);
    for (size_t i = 0; i < report->memory_stacks.count; i++)
        sampled_add(speedscope, &sampled, &speedscope->memory_stacks[i],
                    &speedscope->frames.memory_stacks[i], ledger_bytes(megabytes(report, i)));
    sampled_end(speedscope, &sampled);
}

/* The kinds of all threads, so that the first profile, which is shown first, is one of CPU time. */
static void profiles_write(struct speedscope *speedscope, const struct report *report)
{
    static const struct {
        const char *what;
        amount_us *amount;
    } kinds[] = {
        { ", CPU", ledger_cpu_us },
        { ", waiting", ledger_wait_us },
        { ", wall", ledger_wall_us },
    };
    const struct ledger *ledger = &speedscope->ledger;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
        for (size_t i = 0; i < ledger->thread_index.count; i++)
            thread_write(speedscope, &ledger->threads[i], kinds[kind].what, kinds[kind].amount);
    if (report->memory_stacks.count)
        memory_write(speedscope, report, "allocated memory", allocated_mb);
    if (report->memory_stacks_live_mb.count)
        memory_write(speedscope, report, "live memory", report_stack_live_mb);
}

static int document_write(struct speedscope *speedscope, const struct report *report, FILE *into)
{
    struct json_document *json = &speedscope->json;
    const char *program = frame_table_text(&speedscope->frames, report->program);
    speedscope->stacks = calloc(report->combined_stacks.count + 1, sizeof(char *));
    speedscope->memory_stacks = calloc(report->memory_stacks.count + 1, sizeof(char *));
    if (!program || !speedscope->stacks || !speedscope->memory_stacks)
        return -ENOMEM;
    yyjson_mut_obj_add_str(json->doc, json->root, "$schema", SCHEMA);
    yyjson_mut_obj_add_str(json->doc, json->root, "exporter", "scalene-attach");
    yyjson_mut_obj_add_str(json->doc, json->root, "name", *program ? program : "scalene-attach");
    yyjson_mut_obj_add_int(json->doc, json->root, "activeProfileIndex", 0);
    frames_write(speedscope);
    speedscope->profiles = json_list(json, json->root, "profiles");
    profiles_write(speedscope, report);
    return json_document_write(json, into);
}

int speedscope_write(const struct report *report, FILE *into)
{
    struct speedscope speedscope = { .stacks = NULL };
    json_document_init(&speedscope.json);
    int error = frame_table_init(&speedscope.frames, report);
    if (!error)
        error = ledger_init(&speedscope.ledger, report);
    if (!error)
        error = document_write(&speedscope, report, into);
    json_document_done(&speedscope.json);
    frame_table_done(&speedscope.frames);
    ledger_done(&speedscope.ledger);
    free(speedscope.stacks);
    free(speedscope.memory_stacks);
    return error;
}
