/* The parts that a report is built from, one file each; all text and all lists go into the report's
 * arena. */
#pragma once

#include "output/model/profile_state.h"

/* How much was left out, for the notes. */
struct report_gaps {
    size_t small_files, threads, runs;
    double small_files_s; /* base seconds in them */
    double shown_s;       /* base seconds on shown lines */
    uint64_t far_lines;   /* samples on lines beyond the most that a file may have */
};

int report_add_files(struct report *report, const struct profile *profile,
                     struct report_gaps *gaps);
int report_add_stacks(struct report *report, const struct profile *profile,
                      struct report_gaps *gaps);
int report_add_notes(struct report *report, const struct profile *profile,
                     const struct report_gaps *gaps);

/* A copy; NULL of NULL, and when out of memory. */
const char *report_text(struct report *report, const char *text);

/* One sentence more; the list has room for NOTES_MAX. 0 or -ENOMEM. */
int report_add_note(struct report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

enum { NOTES_MAX = 100, HIDDEN_MAX = 5, THREADS_MAX = 1000, FAR_LINES_MAX = 20000 };
