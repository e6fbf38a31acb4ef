/* The table of columns: what there is to know of a line, once, for every output. */
#pragma once

#include "output/model/line_stats.h"

struct column {
    const char *key, *group, *title, *help;
    enum value_kind kind;
    int width;     /* in a terminal; 0: not shown there */
    size_t offset; /* in struct line_stats */
};

extern const struct column columns[];
extern const size_t column_count;

/* NULL when there is none of that key. */
const struct column *column_find(const char *key);

/* By what a person may call it: its key, or its title, in any case. */
const struct column *column_find_named(const char *name);

static inline const void *column_value(const struct column *column, const struct line_stats *stats)
{
    return (const char *)stats + column->offset;
}

/* Has any of the lines something to show in this column? */
bool column_is_used(const struct column *column, const struct line_stats *lines, size_t count);
