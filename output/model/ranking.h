/*
 * Lines or functions of a report that were asked for, in the order of one column: what views list
 * beside whole files. Borrows from the report.
 */
#pragma once

#include "output/model/columns.h"
#include "output/model/report.h"

/* What was asked for; all zero is everything. */
struct selection {
    const char *file, *function; /* patterns; NULL: all */
    const struct column *sort;   /* NULL: the share of the base */
    size_t top;                  /* so many at most; 0: all */
};

struct ranked {
    const struct report_file *file;
    const struct line_stats *stats;
    double rank;
};

struct ranking {
    struct ranked *items;
    size_t count;
};

enum ranking_of { RANKING_OF_LINES, RANKING_OF_FUNCTIONS };

/* A pattern with one of `*?[` is a shell's for the whole name, or the end of a path; any other is
 * part of it. */
bool selection_takes_file(const struct selection *selection, const struct report_file *file);
bool selection_takes_function(const struct selection *selection, const struct line_stats *function);

/* Which lines are in functions that were asked for: a flag for each, or NULL when all are (then
 * `*ret` is NULL, too). 0 or -ENOMEM. */
int selection_mark_lines(const struct selection *selection, const struct report_file *file,
                         bool **ret);

/* Those that have a value in the column, the largest first (of texts and line numbers, the first
 * first); without one, those that have any value. 0 or -ENOMEM; the caller frees the items. */
int ranking_new(const struct report *report, const struct selection *selection, enum ranking_of of,
                struct ranking *ret);
