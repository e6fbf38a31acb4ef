/*
 * Which line of one version of a file is which line of another, by their texts: what stayed in
 * order (patience diff), blocks that moved, and lines that were edited where they stood. Bounded
 * in time and memory whatever the texts are; what is not found within that has no match.
 */
#pragma once

#include "output/model/function_match.h"

enum line_fate {
    LINE_GONE,   /* no match */
    LINE_KEPT,   /* the same text, but for white space at its end */
    LINE_MOVED,  /* that, elsewhere */
    LINE_EDITED, /* a similar text between the same neighbours, or in the same function */
};

struct line_match {
    size_t count;
    uint32_t *matches; /* of each old line: the index of the new one, or LINE_NONE */
    unsigned char *fates;
    struct function_match functions;
};

/* Where one of them is blank, each line is the one of its number. 0 or -ENOMEM. */
int line_match_init(struct line_match *match, const struct report_file *old_file,
                    const struct report_file *new_file);
void line_match_done(struct line_match *match);

/* Is the old function or class of that first line, its decorator's if it has one, the new one of
 * this? */
bool line_match_same_function(const struct line_match *match, const struct report_file *old_file,
                              int64_t old_lineno, const struct report_file *new_file,
                              int64_t new_lineno);

#define AUTO_LINE_MATCH CLEANUP(line_match_done)

/* Its source could not be read: lines are numbers. */
bool file_is_blank(const struct report_file *file);
