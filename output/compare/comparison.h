/*
 * Two profiles side by side: the whole, files, functions and lines, those first whose time changed
 * most. Lines are found again through edits of their source, functions by name or by their lines,
 * files by path or content. Draws from the two reports, which must live as long; no I/O.
 */
#pragma once

#include "output/compare/metric.h"

struct change {
    double old_value, new_value; /* NaN: not known */
    double error; /* half-width of the 95 % interval of their difference; 0: exact or not known */
    double rounding; /* so much of it is none: numbers of a profile are rounded */
};

enum compared_state {
    COMPARED_SAME,
    COMPARED_MOVED,  /* a file or a function: renamed */
    COMPARED_EDITED, /* a line */
    COMPARED_ADDED,
    COMPARED_REMOVED,
    COMPARED_STATES
};

/* A file, a function or a line. */
struct compared {
    const char *file, *old_file; /* NULL: not there */
    const char *name, *old_name; /* of a function, the first the old one where there is no new */
    const char *text;            /* of a line: the new one, if there is one */
    int64_t lineno, old_lineno;  /* 0: not there */
    enum compared_state state;
    struct change changes[METRIC_COUNT];
};

struct compared_list {
    struct compared *items;
    size_t count, room;
};

struct comparison {
    const struct report *old_report, *new_report;
    struct change totals[METRIC_COUNT];
    struct compared_list files, functions, lines; /* with a cost in one of the profiles */
    bool has_memory;                              /* in both */
    const char *notes[8];                         /* what a reader of the numbers must know */
    size_t note_count;
};

/* 0 or -ENOMEM. */
int comparison_new(const struct report *old_report, const struct report *new_report,
                   struct comparison **ret);
void comparison_free(struct comparison *comparison);

/* new - old, but for rounding; NaN when one is not known. */
double change_difference(const struct change *change);

/* Of the old value, in percent; infinite where that was zero; NaN when nothing is known. */
double change_percent(const struct change *change);

/* Is there a difference, and beyond what sampling leaves open? */
bool change_is_significant(const struct change *change);

/* "same", "moved", … */
const char *compared_state_name(enum compared_state state);
