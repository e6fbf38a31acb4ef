/* All that is known of one line or one function, ready to be shown: a member for each row of
 * columns.def. */
#pragma once

#include "output/model/value.h"

struct line_stats {
#define COLUMN(key, kind, group, width, title, help) VALUE_TYPE_##kind key;
#include "output/model/columns.def"
#undef COLUMN
};

/* python + native + system: the line's share of the base, in percent. */
static inline double line_percent(const struct line_stats *stats)
{
    return stats->n_cpu_percent_python + stats->n_cpu_percent_c + stats->n_sys_percent;
}
