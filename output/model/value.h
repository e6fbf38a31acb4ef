/*
 * The kinds of value a report holds. The kind alone says what C type a value has, how JSON writes
 * it and what text a view shows, so that nobody decides per column.
 */
#pragma once

#include "sampler/base/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WAIT_KINDS (THREAD_STATE_COUNT - THREAD_WAIT_GIL)

/* Seconds by kind of waiting, in the order of enum thread_state from THREAD_WAIT_GIL on. */
struct wait_times {
    double seconds[WAIT_KINDS];
};

static inline double wait_times_sum(const struct wait_times *waits)
{
    double seconds = 0;
    for (size_t i = 0; i < WAIT_KINDS; i++)
        seconds += waits->seconds[i];
    return seconds;
}

struct point {
    double time_ns, megabytes;
};

struct native_share {
    const char *symbol, *module;
    double seconds;
};

/* What views and exports call native code without a module: it was made in memory. */
#define IN_NO_FILE "[anonymous memory]"

/* Lists: a pointer, then a count. Borrowed from the report's arena. */
struct text_list {
    const char **items;
    size_t count;
};

struct number_list {
    double *items;
    size_t count;
};

struct point_list {
    struct point *items;
    size_t count;
};

struct native_list {
    struct native_share *items;
    size_t count;
};

enum value_kind {
    VALUE_TEXT,      /* const char *, may be NULL */
    VALUE_SOURCE,    /* const char *: a line of source text, or a function's qualified name */
    VALUE_FLAG,      /* bool */
    VALUE_LINE,      /* int64_t: a line number; 0: none */
    VALUE_COUNT,     /* int64_t */
    VALUE_PERCENT,   /* double, 0..100 */
    VALUE_POINTS,    /* double: percentage points, a margin of error */
    VALUE_FRACTION,  /* double, 0..1 */
    VALUE_SECONDS,   /* double */
    VALUE_MEGABYTES, /* double: MiB */
    VALUE_RATE,      /* double: MiB a second */
    VALUE_NUMBER,    /* double */
    VALUE_SPARK,     /* struct point_list: megabytes over time */
    VALUE_MOMENTS,   /* struct number_list: seconds of the monotonic clock */
    VALUE_TEXTS,     /* struct text_list */
    VALUE_WAITS,     /* struct wait_times */
    VALUE_NATIVE,    /* struct native_list */
    VALUE_KIND_COUNT
};

/* The word for it in `columns` of the JSON: "percent", "megabytes", … */
const char *value_kind_name(enum value_kind kind);

/* The C type of a kind, for tables that define a struct's members. */
#define VALUE_TYPE_TEXT const char *
#define VALUE_TYPE_SOURCE const char *
#define VALUE_TYPE_FLAG bool
#define VALUE_TYPE_LINE int64_t
#define VALUE_TYPE_COUNT int64_t
#define VALUE_TYPE_PERCENT double
#define VALUE_TYPE_POINTS double
#define VALUE_TYPE_FRACTION double
#define VALUE_TYPE_SECONDS double
#define VALUE_TYPE_MEGABYTES double
#define VALUE_TYPE_RATE double
#define VALUE_TYPE_NUMBER double
#define VALUE_TYPE_SPARK struct point_list
#define VALUE_TYPE_MOMENTS struct number_list
#define VALUE_TYPE_TEXTS struct text_list
#define VALUE_TYPE_WAITS struct wait_times
#define VALUE_TYPE_NATIVE struct native_list
