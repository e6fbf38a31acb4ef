#include "output/model/columns.h"

#include "output/model/format.h"

#include <string.h>

const struct column columns[] = {
#define COLUMN(key, kind, group, width, title, help)                                               \
    { #key, group, title, help, VALUE_##kind, width, offsetof(struct line_stats, key) },
#include "output/model/columns.def"
#undef COLUMN
};

const size_t column_count = sizeof columns / sizeof *columns;

const struct column *column_find(const char *key)
{
    for (size_t i = 0; i < column_count; i++)
        if (strcmp(columns[i].key, key) == 0)
            return &columns[i];
    return NULL;
}

bool column_is_used(const struct column *column, const struct line_stats *lines, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (format_value(column->kind, column_value(column, &lines[i]), NULL, 0) > 0)
            return true;
    return false;
}
