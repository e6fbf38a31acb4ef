/*
 * The Firefox Profiler's processed format, version 61, which its CHANGELOG-formats.md documents and
 * all later ones read: tables of stacks and frames that threads share, and the threads.
 */
#include "output/export/export.h"

#include "output/export/gecko_profile.h"
#include "sampler/base/error.h"

#include <inttypes.h>
#include <stdlib.h>

enum { GECKO_VERSION = 31, PROCESSED_VERSION = 61 };

int64_t gecko_text(struct gecko *gecko, const char *text)
{
    return text_table_add(&gecko->texts, frame_table_text(&gecko->frames, text));
}

/* ---- what is said of the whole ---- */

static void categories_write(struct gecko *gecko, yyjson_mut_val *meta)
{
    static const char *const rows[][2] = {
        [CATEGORY_PYTHON] = { "Python", "yellow" },
        [CATEGORY_NATIVE] = { "Native", "blue" },
        [CATEGORY_WAITING] = { "Waiting", "transparent" },
        [CATEGORY_OTHER] = { "Other", "grey" }, /* which the profiler asks for */
    };
    struct json_document *json = &gecko->json;
    yyjson_mut_val *categories = json_list(json, meta, "categories");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        yyjson_mut_val *category = json_item(json, categories);
        yyjson_mut_obj_add_str(json->doc, category, "name", rows[i][0]);
        yyjson_mut_obj_add_str(json->doc, category, "color", rows[i][1]);
        yyjson_mut_arr_add_str(json->doc, json_list(json, category, "subcategories"), "Other");
    }
}

static void field_write(struct json_document *json, yyjson_mut_val *fields, const char *key,
                        const char *label, const char *format)
{
    yyjson_mut_val *field = json_item(json, fields);
    yyjson_mut_obj_add_str(json->doc, field, "key", key);
    yyjson_mut_obj_add_str(json->doc, field, "label", label);
    yyjson_mut_obj_add_str(json->doc, field, "format", format);
}

static void marker_schema_write(struct gecko *gecko, yyjson_mut_val *meta)
{
    static const char *const places[] = { "marker-chart", "marker-table", "timeline-overview" };
    struct json_document *json = &gecko->json;
    yyjson_mut_val *schema = json_item(json, json_list(json, meta, "markerSchema"));
    yyjson_mut_obj_add_str(json->doc, schema, "name", "wait");
    yyjson_mut_obj_add_str(json->doc, schema, "chartLabel", "waits: {marker.data.what}");
    yyjson_mut_obj_add_str(json->doc, schema, "tableLabel", "waits: {marker.data.what}");
    yyjson_mut_val *display = json_list(json, schema, "display");
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        yyjson_mut_arr_add_str(json->doc, display, places[i]);
    yyjson_mut_val *fields = json_list(json, schema, "fields");
    field_write(json, fields, "what", "For what", "string");
    field_write(json, fields, "waited", "Waited", "duration");
}

static void units_write(struct gecko *gecko, yyjson_mut_val *meta)
{
    struct json_document *json = &gecko->json;
    yyjson_mut_val *units = json_object(json, meta, "sampleUnits");
    yyjson_mut_obj_add_str(json->doc, units, "time", "ms");
    yyjson_mut_obj_add_str(json->doc, units, "eventDelay", "ms");
    yyjson_mut_obj_add_str(json->doc, units, "threadCPUDelta", "µs");
}

static void meta_write(struct gecko *gecko, const struct report *report)
{
    struct json_document *json = &gecko->json;
    yyjson_mut_doc *doc = json->doc;
    yyjson_mut_val *meta = json_object(json, json->root, "meta");
    uint64_t rate = ledger_millionths(report->sampling.rate_hz);
    const char *program = frame_table_text(&gecko->frames, report->program);
    json->is_short |= !program;
    yyjson_mut_obj_add_int(doc, meta, "version", GECKO_VERSION);
    yyjson_mut_obj_add_int(doc, meta, "preprocessedProfileVersion", PROCESSED_VERSION);
    yyjson_mut_obj_add_real(doc, meta, "interval", rate ? 1e9 / (double)rate : 1);
    yyjson_mut_obj_add_real(doc, meta, "startTime",
                            (double)ledger_moment_us(report->start_time_absolute) / 1000);
    yyjson_mut_obj_add_real(doc, meta, "profilingStartTime", 0);
    yyjson_mut_obj_add_real(doc, meta, "profilingEndTime",
                            (double)ledger_millionths(report->elapsed_time_sec) / 1000);
    yyjson_mut_obj_add_int(doc, meta, "processType", 0);
    yyjson_mut_obj_add_int(doc, meta, "stackwalk", 1);
    yyjson_mut_obj_add_bool(doc, meta, "debug", false);
    yyjson_mut_obj_add_str(doc, meta, "product", program && *program ? program : "Python");
    yyjson_mut_obj_add_str(doc, meta, "importedFrom", "scalene-attach");
    yyjson_mut_obj_add_bool(doc, meta, "symbolicated", true);
    yyjson_mut_obj_add_bool(doc, meta, "sourceCodeIsNotOnSearchfox", true);
    units_write(gecko, meta);
    categories_write(gecko, meta);
    marker_schema_write(gecko, meta);
}

/* The memory of all processes over time. */
static void counters_write(struct gecko *gecko, const struct report *report)
{
    struct json_document *json = &gecko->json;
    const struct ledger_thread *first = &gecko->ledger.threads[gecko_thread_next(gecko, 0)];
    char pid[32];
    if (!report->samples.count)
        return;
    snprintf(pid, sizeof pid, "%" PRId64, first->pid < 0 ? 0 : first->pid);
    yyjson_mut_val *counter = json_item(json, json_list(json, json->root, "counters"));
    yyjson_mut_obj_add_str(json->doc, counter, "name", "malloc");
    yyjson_mut_obj_add_str(json->doc, counter, "category", "Memory");
    yyjson_mut_obj_add_str(json->doc, counter, "description", "memory that is allocated");
    yyjson_mut_obj_add_strcpy(json->doc, counter, "pid", pid);
    yyjson_mut_obj_add_int(json->doc, counter, "mainThreadIndex", 0);
    yyjson_mut_val *samples = json_object(json, counter, "samples");
    yyjson_mut_val *times = json_list(json, samples, "time");
    yyjson_mut_val *counts = json_list(json, samples, "count");
    int64_t before = 0;
    for (size_t i = 0; i < report->samples.count; i++) {
        int64_t bytes = (int64_t)ledger_bytes(report->samples.items[i].megabytes);
        yyjson_mut_arr_add_real(json->doc, times,
                                (double)ledger_point_ns(&report->samples.items[i]) / 1e6);
        yyjson_mut_arr_add_int(json->doc, counts, bytes - before);
        before = bytes;
    }
    yyjson_mut_obj_add_uint(json->doc, samples, "length", report->samples.count);
}

/* ---- the tree of stacks ---- */

static int stacks_add(struct gecko *gecko, const struct frame_stack *stacks, size_t count,
                      uint32_t **ret)
{
    *ret = calloc(count + 1, sizeof **ret);
    for (size_t i = 0; *ret && i < count; i++) {
        int64_t node = 0;
        for (size_t n = 0; n < stacks[i].count; n++) {
            node = key_index_add(&gecko->nodes,
                                 (struct key){ { (uint64_t)node, stacks[i].locations[n] } });
            if (node++ < 0)
                return -ENOMEM;
        }
        (*ret)[i] = (uint32_t)node;
    }
    return *ret ? 0 : -ENOMEM;
}

static int profile_write(struct gecko *gecko, const struct report *report, FILE *into)
{
    int error =
        stacks_add(gecko, gecko->frames.stacks, report->combined_stacks.count, &gecko->stacks);
    if (!error)
        error = stacks_add(gecko, gecko->frames.memory_stacks, report->memory_stacks.count,
                           &gecko->memory_stacks);
    if (error)
        return error;
    meta_write(gecko, report);
    counters_write(gecko, report);
    gecko_threads_write(gecko, report);
    gecko_shared_write(gecko);
    return gecko->texts.is_short ? -ENOMEM : json_document_write(&gecko->json, into);
}

int gecko_write(const struct report *report, FILE *into)
{
    struct gecko gecko = { .stacks = NULL };
    json_document_init(&gecko.json);
    int error = frame_table_init(&gecko.frames, report);
    if (!error)
        error = ledger_init(&gecko.ledger, report);
    if (!error)
        error = profile_write(&gecko, report, into);
    json_document_done(&gecko.json);
    frame_table_done(&gecko.frames);
    ledger_done(&gecko.ledger);
    text_table_done(&gecko.texts);
    key_index_done(&gecko.nodes);
    free(gecko.stacks);
    free(gecko.memory_stacks);
    return error;
}
