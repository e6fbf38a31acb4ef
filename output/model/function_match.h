/*
 * Functions and classes of two versions of a file, by the regions that its lines tell, and which of
 * them is which: those of one qualified name, then those whose first lines are matched, then those
 * that share a name and a line, or most of the lines that are matched. Regions may say anything.
 */
#pragma once

#include "output/model/key_index.h"
#include "output/model/report.h"
#include "sampler/base/cleanup.h"

/* No line, and no function. */
#define LINE_NONE UINT32_MAX

struct function_range {
    uint32_t first, end; /* indexes of lines: from that of `def` to the one behind the last */
    uint32_t outer;      /* the one around it, or LINE_NONE */
    uint32_t twin;       /* which it is on the other side, or LINE_NONE */
    struct key name;     /* qualified; all zero: none */
};

struct file_functions {
    struct function_range *items; /* by first line */
    size_t count;
    uint32_t *of_lines; /* the innermost around each line, or LINE_NONE */
};

struct function_match {
    struct file_functions sides[2]; /* of the old and of the new file */
};

/* `matches`: of each old line the new one, or LINE_NONE. 0 or -ENOMEM. */
int function_match_init(struct function_match *match, const struct report_file *old_file,
                        const struct report_file *new_file, const uint32_t *matches);
void function_match_done(struct function_match *match);

/* Which begins at that line, or with a decorator there; LINE_NONE: none. */
uint32_t file_functions_find(const struct file_functions *functions, const struct report_file *file,
                             int64_t lineno);

/* May an old line be that new one? Not across functions that are known to be others. */
bool function_match_allows(const struct function_match *match, size_t old_line, size_t new_line);
