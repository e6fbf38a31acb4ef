#include "output/json/profile_json.h"

#include "output/json/json_writer.h"
#include "output/json/profile_fields.h"
#include "output/model/columns.h"
#include "sampler/base/cleanup.h"

#include <stdlib.h>
#include <string.h>

/* A pointer and a count, as every list of a report begins. */
struct any_list {
    const char *items;
    size_t count;
};

static struct any_list list_at(const void *value)
{
    struct any_list list;
    memcpy(&list, value, sizeof list);
    return list;
}

/* Scalene's page undoes this; without it a line of source could end the script element it stands
 * in. */
static int write_source(struct json_writer *json, const char *source)
{
    size_t length = strlen(source ?: "");
    AUTO_FREE char *escaped = malloc(6 * length + 1);
    if (!escaped)
        return -ENOMEM;
    char *to = escaped;
    for (size_t i = 0; i < length; i++) {
        if (strchr("&<>", source[i]))
            to += sprintf(to, "\\u%04x", source[i]);
        else
            *to++ = source[i];
    }
    *to = '\0';
    json_text(json, escaped);
    return 0;
}

static void write_points(struct json_writer *json, const struct point_list *list)
{
    json_begin(json, '[');
    for (size_t i = 0; i < list->count; i++) {
        json_begin(json, '[');
        json_integer(json, (int64_t)list->items[i].time_ns);
        json_float(json, list->items[i].megabytes);
        json_end(json, ']');
    }
    json_end(json, ']');
}

static void write_numbers(struct json_writer *json, const struct number_list *list)
{
    json_begin(json, '[');
    for (size_t i = 0; i < list->count; i++)
        json_float(json, list->items[i]);
    json_end(json, ']');
}

static void write_texts(struct json_writer *json, const struct text_list *list)
{
    json_begin(json, '[');
    for (size_t i = 0; i < list->count; i++)
        json_text(json, list->items[i]);
    json_end(json, ']');
}

static void write_waits(struct json_writer *json, const struct wait_times *waits)
{
    json_begin(json, '{');
    for (size_t i = 0; i < WAIT_KINDS; i++) {
        json_key(json, thread_state_name(THREAD_WAIT_GIL + i));
        json_float(json, waits->seconds[i]);
    }
    json_end(json, '}');
}

static void write_natives(struct json_writer *json, const struct native_list *list)
{
    json_begin(json, '[');
    for (size_t i = 0; i < list->count; i++) {
        json_begin(json, '{');
        json_key(json, "module");
        json_text(json, list->items[i].module);
        json_key(json, "seconds");
        json_float(json, list->items[i].seconds);
        json_key(json, "symbol");
        json_text(json, list->items[i].symbol);
        json_end(json, '}');
    }
    json_end(json, ']');
}

static int write_value(struct json_writer *json, enum value_kind kind, const void *value)
{
    switch (kind) {
    case VALUE_TEXT:
        json_text(json, *(const char *const *)value);
        return 0;
    case VALUE_SOURCE:
        return write_source(json, *(const char *const *)value);
    case VALUE_FLAG:
        json_word(json, *(const bool *)value ? "true" : "false");
        return 0;
    case VALUE_LINE:
    case VALUE_COUNT:
        json_integer(json, *(const int64_t *)value);
        return 0;
    case VALUE_SPARK:
        write_points(json, value);
        return 0;
    case VALUE_MOMENTS:
        write_numbers(json, value);
        return 0;
    case VALUE_TEXTS:
        write_texts(json, value);
        return 0;
    case VALUE_WAITS:
        write_waits(json, value);
        return 0;
    case VALUE_NATIVE:
        write_natives(json, value);
        return 0;
    default:
        json_float(json, *(const double *)value);
        return 0;
    }
}

static void write_columns(struct json_writer *json)
{
    json_begin(json, '[');
    json->flat = json->depth + 1;
    for (size_t i = 0; i < column_count; i++) {
        const char *const texts[][2] = {
            { "group", columns[i].group }, { "help", columns[i].help },
            { "key", columns[i].key },     { "kind", value_kind_name(columns[i].kind) },
            { "title", columns[i].title },
        };
        json_begin(json, '{');
        for (size_t n = 0; n < sizeof texts / sizeof *texts; n++) {
            json_key(json, texts[n][0]);
            json_text(json, texts[n][1]);
        }
        json_end(json, '}');
    }
    json->flat = 0;
    json_end(json, ']');
}

/* ---- records ---- */

static int key_is_later(const void *a, const void *b)
{
    const struct field *const *left = a, *const *right = b;
    return strcmp((*left)->key, (*right)->key);
}

/* The fields that the record has, in the order in which they are written. */
enum { FIELDS_MAX = 64 };

static size_t fields_order(const struct record *record, const struct field **ret)
{
    size_t count = 0;
    for (size_t i = 0; i < record->count; i++) {
        const struct field *field = &record->fields[i];
        if (!(record->without && field->group && strcmp(field->group, record->without) == 0))
            ret[count++] = field;
    }
    if (record->shape == SHAPE_OBJECT)
        qsort(ret, count, sizeof(const struct field *), key_is_later);
    return count;
}

struct ordered {
    const struct record *record;
    const struct field *fields[FIELDS_MAX];
    size_t count;
};

static int write_field(struct json_writer *json, const struct field *field, const char *at);

static int write_record(struct json_writer *json, const struct ordered *order, const char *at)
{
    bool is_object = order->record->shape == SHAPE_OBJECT;
    int error = 0;
    json_begin(json, is_object ? '{' : '[');
    for (size_t i = 0; i < order->count && !error; i++) {
        if (is_object)
            json_key(json, order->fields[i]->key);
        error = write_field(json, order->fields[i], at + order->fields[i]->offset);
    }
    json_end(json, is_object ? '}' : ']');
    return error;
}

/* One line of text for each record that holds no list of records with lines of their own. */
static bool is_flat(const struct ordered *order)
{
    for (size_t i = 0; i < order->count; i++)
        if (order->fields[i]->kind == FIELD_RECORDS || order->fields[i]->kind == FIELD_MAP)
            return false;
    return true;
}

static int write_records(struct json_writer *json, const struct field *field, struct any_list list)
{
    struct ordered order = { .record = field->record };
    order.count = fields_order(field->record, order.fields);
    bool is_map = field->kind == FIELD_MAP;
    bool flattens = !json->flat && is_flat(&order);
    int error = 0;
    json_begin(json, is_map ? '{' : '[');
    for (size_t i = 0; i < list.count && !error; i++) {
        const char *item =
            list.items + i * (field->kind == FIELD_POINTERS ? sizeof(void *) : field->record->size);
        if (field->kind == FIELD_POINTERS)
            item = *(const char *const *)item;
        if (is_map)
            json_key(json, *(const char *const *)item);
        if (flattens)
            json->flat = json->depth + 1;
        error = write_record(json, &order, item);
        if (flattens)
            json->flat = 0;
    }
    json_end(json, is_map ? '}' : ']');
    return error;
}

static int write_field(struct json_writer *json, const struct field *field, const char *at)
{
    struct ordered order = { .record = field->record };
    switch (field->kind) {
    case FIELD_VALUE:
        return write_value(json, field->value, at);
    case FIELD_OPTIONAL:
        if (*(const int64_t *)at < 0)
            json_word(json, "null");
        else
            json_integer(json, *(const int64_t *)at);
        return 0;
    case FIELD_RECORD:
        order.count = fields_order(field->record, order.fields);
        return write_record(json, &order, at);
    case FIELD_COLUMNS:
        write_columns(json);
        return 0;
    default:
        return write_records(json, field, list_at(at));
    }
}

int profile_json_write(const struct report *report, FILE *into)
{
    struct json_writer json = { .into = into };
    struct ordered order = { .record = &profile_record };
    order.count = fields_order(&profile_record, order.fields);
    int error = write_record(&json, &order, (const char *)report);
    return error ? error : ferror(into) ? -EIO : 0;
}
