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
    uint64_t moments;     /* of the samples of lines, beyond the most that a line may have */
    size_t source_notes, more_source_notes; /* that were made, and that had no room */
};

/* The run as a whole; before the files, which need its totals. */
int report_add_memory(struct report *report, const struct profile *profile);

/* `numbers[file]` is 1 + the file's place in the report; 0: left out. */
int report_add_leaks(struct report *report, const struct profile *profile, const uint32_t *numbers);
int report_add_files(struct report *report, const struct profile *profile,
                     struct report_gaps *gaps);
int report_add_stacks(struct report *report, const struct profile *profile,
                      struct report_gaps *gaps);
int report_add_notes(struct report *report, const struct profile *profile,
                     const struct report_gaps *gaps);

/* "file function:line;", and those of a stack of shown places, `known` having what came up before.
 * Places that have been hidden since, by the first @profile, are left out. */
int report_path_write(struct report *report, const struct profile *profile,
                      const struct stack_table *table, uint32_t node, const char **known,
                      struct text_list *ret);

/* What shares and rates of memory are of. */
struct memory_base report_memory_base(const struct profile *profile);

double report_seconds(uint64_t ns);
struct wait_times report_waits(const uint64_t *ns);

/* A copy; NULL of NULL, and when out of memory. */
const char *report_text(struct report *report, const char *text);

/* One sentence more; the list has room for NOTES_MAX. 0 or -ENOMEM. */
int report_add_note(struct report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

enum {
    NOTES_MAX = 100,
    SOURCE_NOTES_MAX = 10,
    HIDDEN_MAX = 5,
    THREADS_MAX = 1000,
    FAR_LINES_MAX = 20000
};
