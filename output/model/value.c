#include "output/model/value.h"

const char *value_kind_name(enum value_kind kind)
{
    static const char *const names[VALUE_KIND_COUNT] = {
        [VALUE_TEXT] = "text",     [VALUE_SOURCE] = "source",       [VALUE_FLAG] = "flag",
        [VALUE_LINE] = "line",     [VALUE_COUNT] = "count",         [VALUE_PERCENT] = "percent",
        [VALUE_POINTS] = "points", [VALUE_FRACTION] = "fraction",   [VALUE_SECONDS] = "seconds",
        [VALUE_RATE] = "rate",     [VALUE_MEGABYTES] = "megabytes", [VALUE_NUMBER] = "number",
        [VALUE_SPARK] = "spark",   [VALUE_MOMENTS] = "moments",     [VALUE_TEXTS] = "texts",
        [VALUE_WAITS] = "waits",   [VALUE_NATIVE] = "native",
    };
    return names[kind];
}
