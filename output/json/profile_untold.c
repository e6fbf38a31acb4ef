#include "output/json/profile_untold.h"

#include "output/json/record_keys.h"
#include "output/model/columns.h"
#include "sampler/base/error.h"

#include <stdio.h>
#include <string.h>

/* ---- types ---- */

/* What JSON has for a value of each kind, and for each item of those that are lists or objects;
 * NONE: a number, and no items. */
static const struct {
    yyjson_type whole, item;
} types_of[VALUE_KIND_COUNT] = {
    [VALUE_TEXT] = { YYJSON_TYPE_STR, YYJSON_TYPE_NONE },
    [VALUE_SOURCE] = { YYJSON_TYPE_STR, YYJSON_TYPE_NONE },
    [VALUE_FLAG] = { YYJSON_TYPE_BOOL, YYJSON_TYPE_NONE },
    [VALUE_SPARK] = { YYJSON_TYPE_ARR, YYJSON_TYPE_ARR },
    [VALUE_MOMENTS] = { YYJSON_TYPE_ARR, YYJSON_TYPE_NUM },
    [VALUE_TEXTS] = { YYJSON_TYPE_ARR, YYJSON_TYPE_STR },
    [VALUE_WAITS] = { YYJSON_TYPE_OBJ, YYJSON_TYPE_NUM },
    [VALUE_NATIVE] = { YYJSON_TYPE_ARR, YYJSON_TYPE_OBJ },
};

static yyjson_type record_type(const struct record *record)
{
    return record->shape == SHAPE_OBJECT ? YYJSON_TYPE_OBJ : YYJSON_TYPE_ARR;
}

static yyjson_type field_type(const struct field *field)
{
    yyjson_type of_value = types_of[field->value].whole;
    switch (field->kind) {
    case FIELD_RECORD:
        return record_type(field->record);
    case FIELD_RECORDS:
    case FIELD_POINTERS:
        return YYJSON_TYPE_ARR;
    case FIELD_MAP:
        return YYJSON_TYPE_OBJ;
    default:
        return of_value == YYJSON_TYPE_NONE ? YYJSON_TYPE_NUM : of_value;
    }
}

/* No value is as good as any. */
static bool type_fits(yyjson_val *json, yyjson_type type)
{
    return !json || yyjson_is_null(json) || yyjson_get_type(json) == type;
}

static void misfit_count(struct report *report, const char *key, bool fits)
{
    if (fits)
        return;
    report->misfits.first = report->misfits.first ?: key;
    report->misfits.count++;
}

static void items_check(struct report *report, const struct field *field, yyjson_val *json)
{
    size_t index, count;
    yyjson_type type = types_of[field->value].item;
    yyjson_val *key, *item;
    if (field->kind != FIELD_VALUE || type == YYJSON_TYPE_NONE)
        return;
    if (yyjson_is_arr(json))
        yyjson_arr_foreach(json, index, count, item)
            misfit_count(report, field->key, type_fits(item, type));
    if (yyjson_is_obj(json))
        yyjson_obj_foreach(json, index, count, key, item)
            misfit_count(report, field->key, type_fits(item, type));
}

void untold_field_check(struct report *report, const struct field *field, yyjson_val *json)
{
    bool fits = type_fits(json, field_type(field));
    if (field->kind == FIELD_COLUMNS)
        return;
    misfit_count(report, field->key, fits);
    if (fits)
        items_check(report, field, json);
}

void untold_record_check(struct report *report, const struct field *field, yyjson_val *json)
{
    misfit_count(report, field->key, type_fits(json, record_type(field->record)));
}

/* ---- keys ---- */

/* Numbers have none for what is not known, texts and lists have. */
static bool is_told(const struct field *field, yyjson_val *json)
{
    yyjson_type type = field_type(field);
    bool is_plain = field->kind == FIELD_VALUE && type == YYJSON_TYPE_NUM;
    return json && type_fits(json, type) && !(is_plain && yyjson_is_null(json));
}

/* Our table of columns is known anyway. `*ret_files` is what the map of files has. */
static void absent_find(const struct record *record, yyjson_val *json, bool *absent,
                        yyjson_val **ret_files)
{
    struct ordered order;
    struct record_keys keys;
    fields_order(record, &order);
    record_keys_begin(&keys, &order, json);
    for (size_t i = 0; i < order.count; i++) {
        const struct field *field = order.fields[i];
        yyjson_val *value = record_keys_next(&keys);
        if (field->kind == FIELD_RECORD)
            absent_find(field->record, value, absent + field->offset, ret_files);
        else if (field->kind != FIELD_COLUMNS)
            absent[field->offset] &= !is_told(field, value);
        if (field->kind == FIELD_MAP)
            *ret_files = value;
    }
}

/* What no file, and no line or function has a key for. */
static int absent_keep(struct report *report, yyjson_val *root)
{
    yyjson_val *files = NULL, *none = NULL, *key, *file;
    size_t index, count;
    report->absent = arena_take(&report->arena, sizeof *report);
    report->absent_of_files = arena_take(&report->arena, sizeof(struct report_file));
    if (!report->absent || !report->absent_of_files)
        return -ENOMEM;
    memset(report->absent, true, sizeof *report);
    absent_find(&profile_record, root, report->absent, &files);
    memset(report->absent_of_files, report->files.count > 0, sizeof(struct report_file));
    yyjson_obj_foreach(files, index, count, key, file)
        absent_find(&file_record, file, report->absent_of_files, &none);
    for (size_t i = 0; report->told_columns && i < column_count; i++)
        report->absent_columns |= ~report->told_columns & (uint64_t)1 << i;
    return 0;
}

/* Whoever reads the numbers must know that some are missing. */
static int misfits_note(struct report *report)
{
    struct text_list *notes = &report->notes;
    const char **items = arena_take(&report->arena, (notes->count + 1) * sizeof *items);
    enum { NOTE_SIZE = 160 };
    char *note = arena_take(&report->arena, NOTE_SIZE);
    if (!items || !note)
        return -ENOMEM;
    if (!report->misfits.count)
        return 0;
    snprintf(note, NOTE_SIZE,
             "left out: %llu of the profile's values, whose type is not what it "
             "should be, the first one of %s",
             (unsigned long long)report->misfits.count, report->misfits.first);
    if (notes->count)
        memcpy(items, notes->items, notes->count * sizeof *items);
    items[notes->count] = note;
    *notes = (struct text_list){ items, notes->count + 1 };
    report->absent[offsetof(struct report, notes)] = false; /* if there were none */
    return 0;
}

int untold_note(struct report *report, yyjson_val *root)
{
    int error = absent_keep(report, root);
    return error ? error : misfits_note(report);
}
