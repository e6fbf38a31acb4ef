#include "output/json/profile_json.h"

#include "output/json/json_value.h"
#include "output/json/profile_fields.h"
#include "output/model/columns.h"

#include <stdlib.h>
#include <string.h>

struct writer {
    struct json_writer json;
    const struct report *report;
};

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

static int write_field(struct writer *writer, const struct field *field, const char *at);

/*
 * What a report was read without stays away: it is not known to be zero. A record in place is told
 * of where anything in it is. `begin` is where the record lies in the report, or far from that.
 */
static bool is_absent(const struct report *report, const struct record *record,
                      const struct field *field, size_t begin)
{
    size_t offset = begin + field->offset;
    if (field->kind == FIELD_COLUMNS)
        return false;
    if (field->kind == FIELD_RECORD) {
        size_t i = 0;
        while (i < field->record->count &&
               is_absent(report, field->record, &field->record->fields[i], offset))
            i++;
        return i == field->record->count;
    }
    if (record == &file_record)
        return !report_tells_of_files(report, field->offset);
    if (field->group)
        return report->absent_columns >> (field - record->fields) & 1;
    return offset < sizeof *report && !report_tells(report, (const char *)report + offset);
}

/* Of a record at `at`, or of a list of them that begins there. */
static void fields_told(const struct report *report, const struct record *record, const char *at,
                        struct ordered *ret)
{
    size_t begin = (uintptr_t)at - (uintptr_t)report, count = 0;
    fields_order(record, ret);
    for (size_t i = 0; i < ret->count; i++)
        if (!is_absent(report, record, ret->fields[i], begin))
            ret->fields[count++] = ret->fields[i];
    ret->count = count;
}

static int write_record(struct writer *writer, const struct ordered *order, const char *at)
{
    bool is_object = order->record->shape == SHAPE_OBJECT;
    int error = 0;
    json_begin(&writer->json, is_object ? '{' : '[');
    for (size_t i = 0; i < order->count && !error; i++) {
        if (is_object)
            json_key(&writer->json, order->fields[i]->key);
        error = write_field(writer, order->fields[i], at + order->fields[i]->offset);
    }
    json_end(&writer->json, is_object ? '}' : ']');
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

static int write_records(struct writer *writer, const struct field *field, struct any_list list)
{
    struct json_writer *json = &writer->json;
    struct ordered order;
    fields_told(writer->report, field->record, list.items, &order);
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
        error = write_record(writer, &order, item);
        if (flattens)
            json->flat = 0;
    }
    json_end(json, is_map ? '}' : ']');
    return error;
}

static int write_field(struct writer *writer, const struct field *field, const char *at)
{
    struct json_writer *json = &writer->json;
    struct ordered order;
    switch (field->kind) {
    case FIELD_VALUE:
        return json_value_write(json, field->value, at);
    case FIELD_OPTIONAL:
        if (*(const int64_t *)at < 0)
            json_word(json, "null");
        else
            json_integer(json, *(const int64_t *)at);
        return 0;
    case FIELD_RECORD:
        fields_told(writer->report, field->record, at, &order);
        return write_record(writer, &order, at);
    case FIELD_COLUMNS:
        write_columns(json);
        return 0;
    default:
        return write_records(writer, field, list_at(at));
    }
}

int profile_json_write(const struct report *report, FILE *into)
{
    struct writer writer = { .json = { .into = into }, .report = report };
    struct ordered order;
    fields_told(report, &profile_record, (const char *)report, &order);
    int error = write_record(&writer, &order, (const char *)report);
    return error ? error : ferror(into) ? -EIO : 0;
}
