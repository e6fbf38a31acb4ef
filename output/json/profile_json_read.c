/* The reading half of profile_json.h. A profile comes from anywhere: what has the wrong type is
 * empty, and a note counts it. */
#include "output/json/profile_json.h"

#include "output/json/profile_fields.h"
#include "output/json/profile_untold.h"
#include "output/json/record_keys.h"
#include "output/json/source_escapes.h"
#include "sampler/base/cleanup.h"

#include <math.h>
#include <string.h>
#include <yyjson.h>

_Static_assert(PROFILE_JSON_PADDING >= YYJSON_PADDING_SIZE, "it reads that far");

DEFINE_CLEANUP(yyjson_doc *, yyjson_doc_free)
DEFINE_CLEANUP(struct report *, report_free)

/* Lists of a report: a pointer, then a count. */
struct any_list {
    void *items;
    size_t count;
};

static int list_new(struct report *report, size_t count, size_t size, void *ret)
{
    struct any_list list = { arena_take(&report->arena, count * size), count };
    if (!list.items)
        return -ENOMEM;
    memcpy(ret, &list, sizeof list);
    return 0;
}

/* Up to its first NUL, like every text. */
static const char *text_copy(struct report *report, yyjson_val *json)
{
    size_t length = strnlen(yyjson_get_str(json), yyjson_get_len(json));
    char *copy = arena_take(&report->arena, length + 1);
    return copy ? memcpy(copy, yyjson_get_str(json), length) : NULL;
}

/* ---- values: what has the wrong type stays empty ---- */

static int read_text(struct report *report, yyjson_val *json, bool is_source, const char **ret)
{
    if (!yyjson_is_str(json))
        return 0;
    char *text = (char *)(uintptr_t)text_copy(report, json);
    if (!text)
        return -ENOMEM;
    if (is_source)
        source_restore(text);
    *ret = text;
    return 0;
}

static int read_texts(struct report *report, yyjson_val *json, struct text_list *ret)
{
    size_t index, count;
    yyjson_val *item;
    if (list_new(report, yyjson_arr_size(json), sizeof *ret->items, ret))
        return -ENOMEM;
    yyjson_arr_foreach(json, index, count, item)
    {
        ret->items[index] = "";
        if (read_text(report, item, false, &ret->items[index]))
            return -ENOMEM;
    }
    return 0;
}

/* To as many digits as we write, so that it is shown the same once it is written again; never the
 * negative zero. */
static double number(yyjson_val *json)
{
    enum { WRITTEN = 1000000 };
    double read = yyjson_get_num(json);
    return fabs(read) < 1e9 ? nearbyint(read * WRITTEN) / WRITTEN + 0.0 : read;
}

static int read_numbers(struct report *report, yyjson_val *json, struct number_list *ret)
{
    size_t index, count;
    yyjson_val *item;
    if (list_new(report, yyjson_arr_size(json), sizeof *ret->items, ret))
        return -ENOMEM;
    yyjson_arr_foreach(json, index, count, item) ret->items[index] = number(item);
    return 0;
}

static int64_t integer(yyjson_val *json)
{
    double real = yyjson_get_real(json);
    if (!yyjson_is_real(json))
        return yyjson_get_sint(json);
    return real > -9e18 && real < 9e18 ? (int64_t)real : 0;
}

static int read_points(struct report *report, yyjson_val *json, struct point_list *ret)
{
    size_t index, count;
    yyjson_val *item;
    if (list_new(report, yyjson_arr_size(json), sizeof *ret->items, ret))
        return -ENOMEM;
    yyjson_arr_foreach(json, index, count, item)
    {
        ret->items[index].time_ns = (double)integer(yyjson_arr_get(item, 0));
        ret->items[index].megabytes = number(yyjson_arr_get(item, 1));
    }
    return 0;
}

static int read_natives(struct report *report, yyjson_val *json, struct native_list *ret)
{
    size_t index, count;
    yyjson_val *item;
    if (list_new(report, yyjson_arr_size(json), sizeof *ret->items, ret))
        return -ENOMEM;
    yyjson_arr_foreach(json, index, count, item)
    {
        struct native_share *share = &ret->items[index];
        share->symbol = share->module = "";
        share->seconds = number(yyjson_obj_get(item, "seconds"));
        if (read_text(report, yyjson_obj_get(item, "symbol"), false, &share->symbol) ||
            read_text(report, yyjson_obj_get(item, "module"), false, &share->module))
            return -ENOMEM;
    }
    return 0;
}

static void read_waits(yyjson_val *json, struct wait_times *ret)
{
    yyjson_obj_iter keys = { 0 };
    yyjson_obj_iter_init(json, &keys);
    for (size_t i = 0; i < WAIT_KINDS; i++) {
        const char *kind = thread_state_name(THREAD_WAIT_GIL + i);
        ret->seconds[i] = number(keys.obj ? yyjson_obj_iter_get(&keys, kind) : NULL);
    }
}

static int read_value(struct report *report, enum value_kind kind, yyjson_val *json, void *ret)
{
    switch (kind) {
    case VALUE_TEXT:
    case VALUE_SOURCE:
        return read_text(report, json, kind == VALUE_SOURCE, ret);
    case VALUE_FLAG:
        *(bool *)ret = yyjson_get_bool(json);
        return 0;
    case VALUE_LINE:
    case VALUE_COUNT:
        *(int64_t *)ret = integer(json);
        return 0;
    case VALUE_SPARK:
        return read_points(report, json, ret);
    case VALUE_MOMENTS:
        return read_numbers(report, json, ret);
    case VALUE_TEXTS:
        return read_texts(report, json, ret);
    case VALUE_WAITS:
        read_waits(json, ret);
        return 0;
    case VALUE_NATIVE:
        return read_natives(report, json, ret);
    default:
        *(double *)ret = number(json);
        return 0;
    }
}

/* ---- records ---- */

static int read_record(struct report *report, const struct ordered *order, yyjson_val *json,
                       char *at);

static int read_map(struct report *report, const struct field *field, yyjson_val *json, char *at)
{
    const struct record *record = field->record;
    struct any_list list;
    struct ordered order;
    size_t index, count;
    yyjson_val *key, *value;
    if (list_new(report, yyjson_obj_size(json), record->size, &list))
        return -ENOMEM;
    fields_order(record, &order);
    memcpy(at, &list, sizeof list);
    if (!list.count) /* empty, or no object at all */
        return 0;
    yyjson_obj_foreach(json, index, count, key, value)
    {
        char *item = (char *)list.items + index * record->size;
        *(const char **)item = "";
        untold_record_check(report, field, value);
        int error = read_text(report, key, false, (const char **)item);
        if (!error)
            error = read_record(report, &order, value, item);
        if (error)
            return error;
    }
    return 0;
}

static int read_records(struct report *report, const struct field *field, yyjson_val *json,
                        char *at)
{
    const struct record *record = field->record;
    bool points = field->kind == FIELD_POINTERS;
    struct any_list list, pointers;
    struct ordered order;
    size_t index, count;
    yyjson_val *value;
    if (list_new(report, yyjson_arr_size(json), record->size, &list) ||
        list_new(report, points ? list.count : 0, sizeof(void *), &pointers))
        return -ENOMEM;
    fields_order(record, &order);
    yyjson_arr_foreach(json, index, count, value)
    {
        char *item = (char *)list.items + index * record->size;
        if (points)
            ((void **)pointers.items)[index] = item;
        untold_record_check(report, field, value);
        int error = read_record(report, &order, value, item);
        if (error)
            return error;
    }
    memcpy(at, points ? &pointers : &list, sizeof list);
    return 0;
}

static int read_field(struct report *report, const struct field *field, yyjson_val *json, char *at)
{
    struct ordered order;
    untold_field_check(report, field, json);
    switch (field->kind) {
    case FIELD_VALUE:
        return read_value(report, field->value, json, at);
    case FIELD_OPTIONAL:
        *(int64_t *)at = yyjson_is_num(json) ? integer(json) : -1;
        return 0;
    case FIELD_RECORD:
        fields_order(field->record, &order);
        return read_record(report, &order, json, at);
    case FIELD_RECORDS:
    case FIELD_POINTERS:
        return read_records(report, field, json, at);
    case FIELD_MAP:
        return read_map(report, field, json, at);
    case FIELD_COLUMNS:
        break; /* ours, and the same */
    }
    return 0;
}

static int read_record(struct report *report, const struct ordered *order, yyjson_val *json,
                       char *at)
{
    struct record_keys keys;
    record_keys_begin(&keys, order, json);
    for (size_t i = 0; i < order->count; i++) {
        const struct field *field = order->fields[i];
        yyjson_val *value = record_keys_next(&keys);
        if (value && field->group)
            report->told_columns |= (uint64_t)1 << (field - order->record->fields);
        int error = read_field(report, field, value, at + field->offset);
        if (error)
            return error;
    }
    return 0;
}

/* ---- the whole ---- */

/* Texts that every report has; views need not ask. */
static int settle_files(struct report *report)
{
    for (size_t i = 0; i < report->files.count; i++) {
        struct report_file *file = &report->files.items[i];
        for (size_t n = 0; n < file->lines.count; n++)
            if (!file->lines.items[n].line || file->lines.items[n].lineno != (int64_t)n + 1)
                return -EBADMSG;
        for (size_t n = 0; n < file->functions.count; n++)
            if (!file->functions.items[n].line)
                return -EBADMSG;
    }
    return 0;
}

/* "0.12.3": which of two is newer, by its first two numbers; the third never changes the format. */
static bool is_newer(const char *version, const char *than)
{
    for (int i = 0; i < 2; i++) {
        char *end, *than_end;
        unsigned long number = strtoul(version, &end, 10), other = strtoul(than, &than_end, 10);
        if (number != other)
            return number > other;
        version = *end == '.' ? end + 1 : end;
        than = *than_end == '.' ? than_end + 1 : than_end;
    }
    return false;
}

static int check_shape(yyjson_val *root, const char *name, const char *version, struct failure *why)
{
    yyjson_val *profiler = yyjson_obj_get(root, "profiler");
    const char *by = yyjson_get_str(yyjson_obj_get(profiler, "name"));
    const char *written = yyjson_get_str(yyjson_obj_get(profiler, "version"));
    if (by && strcmp(by, "scalene-attach") == 0 && written && is_newer(written, version))
        return failure_set(
            why, -ENOTSUP,
            "%s was written by scalene-attach %s, which is newer than this one (%s): "
            "view it with that version or a later one",
            name, written, version);
    if (yyjson_is_obj(root) && yyjson_obj_size(root) == 0)
        return failure_set(why, -EBADMSG, "%s is an empty profile: its run collected nothing",
                           name);
    if (!yyjson_is_obj(yyjson_obj_get(root, "files")) ||
        !yyjson_is_num(yyjson_obj_get(root, "elapsed_time_sec")))
        return failure_set(why, -EBADMSG,
                           "%s is JSON but no profile: it has no `files` or no `elapsed_time_sec`; "
                           "is it the file that a profiling run wrote?",
                           name);
    return 0;
}

/* A text that ends where more should come was cut, most likely by a full disk or a killed writer.
 */
static int parse(char *text, size_t size, const char *name, yyjson_doc **ret, struct failure *why)
{
    yyjson_read_err error = { 0 };
    char first = *text;
    *ret = size ? yyjson_read_opts(text, size, YYJSON_READ_INSITU, NULL, &error) : NULL;
    if (*ret)
        return 0;
    if (error.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
        return failure_set(why, -ENOMEM, "%s is too large for the memory there is", name);
    if (!size)
        return failure_set(why, -EBADMSG, "%s is empty: profile again, it cannot be mended", name);
    if (error.code == YYJSON_READ_ERROR_UNEXPECTED_END || (error.pos + 1 >= size && first == '{'))
        return failure_set(why, -EBADMSG,
                           "%s is truncated: it ends after %zu bytes in the middle; profile again, "
                           "or copy it anew",
                           name, size);
    return failure_set(why, -EBADMSG, "%s is not JSON (%s at byte %zu): is it a profile at all?",
                       name, error.msg, error.pos);
}

int profile_json_read_in_place(char *text, size_t size, const char *name, const char *version,
                               struct report **ret, struct failure *why)
{
    CLEANUP(yyjson_doc_freep) yyjson_doc *doc = NULL;
    CLEANUP(report_freep) struct report *report = report_new();
    struct ordered order;
    if (!report)
        return failure_set(why, -ENOMEM, "%s: out of memory", name);
    int error = parse(text, size, name, &doc, why);
    if (!error)
        error = check_shape(yyjson_doc_get_root(doc), name, version, why);
    if (error)
        return error;
    fields_order(&profile_record, &order);
    error = read_record(report, &order, yyjson_doc_get_root(doc), (char *)report);
    if (!error)
        error = settle_files(report);
    if (!error)
        error = untold_note(report, yyjson_doc_get_root(doc));
    if (error == -EBADMSG)
        return failure_set(why, error, "%s is damaged: lines of its files are missing", name);
    if (error)
        return failure_set(why, error, "%s: out of memory", name);
    *ret = TAKE_PTR(report);
    return 0;
}

int profile_json_read(const char *text, size_t size, const char *name, const char *version,
                      struct report **ret, struct failure *why)
{
    AUTO_FREE char *copy = calloc(1, size + PROFILE_JSON_PADDING);
    if (!copy)
        return failure_set(why, -ENOMEM, "%s is too large for the memory there is", name);
    memcpy(copy, text, size);
    return profile_json_read_in_place(copy, size, name, version, ret, why);
}
