#include "output/model/columns.h"

#include "output/model/format.h"

#include <string.h>
#include <strings.h>

const struct column columns[] = {
#define COLUMN(key, kind, group, width, title, help)                                               \
    { #key, group, title, help, VALUE_##kind, width, offsetof(struct line_stats, key) },
#include "output/model/columns.def"
#undef COLUMN
};

_Static_assert(sizeof columns / sizeof *columns <= 64, "report.h has a bit for each");
const size_t column_count = sizeof columns / sizeof *columns;

const struct column *column_find(const char *key)
{
    for (size_t i = 0; i < column_count; i++)
        if (strcmp(columns[i].key, key) == 0)
            return &columns[i];
    return NULL;
}

const struct column *column_find_named(const char *name)
{
    const struct column *found = column_find(name);
    for (size_t i = 0; i < column_count && !found; i++)
        if (strcasecmp(columns[i].title, name) == 0)
            found = &columns[i];
    return found;
}

bool column_is_used(const struct column *column, const struct line_stats *lines, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (format_value(column->kind, column_value(column, &lines[i]), NULL, 0) > 0)
            return true;
    return false;
}
