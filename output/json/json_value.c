#include "output/json/json_value.h"

#include "output/json/source_escapes.h"
#include "sampler/base/cleanup.h"

#include <errno.h>
#include <math.h>

static int write_source(struct json_writer *json, const char *source)
{
    AUTO_FREE char *escaped = source_escape(source);
    if (!escaped)
        return -ENOMEM;
    json_text(json, escaped);
    return 0;
}

/* No run lasts so long, but a stream may say so. */
#define TIME_MOST 9e18

static void write_points(struct json_writer *json, const struct point_list *list)
{
    json_begin(json, '[');
    for (size_t i = 0; i < list->count; i++) {
        json_begin(json, '[');
        json_integer(json, (int64_t)fmin(fmax(list->items[i].time_ns, 0), TIME_MOST));
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

int json_value_write(struct json_writer *json, enum value_kind kind, const void *value)
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
