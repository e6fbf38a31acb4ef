/*
 * Where the lines and functions of one version of a file are in the text of another that is kept.
 * What is gone stays in its function, so that no other one gets its time. Borrows from both files.
 */
#pragma once

#include "output/model/line_match.h"

/* All zero: nothing is known, and wants no line_homes_done. */
struct line_homes {
    const struct report_file *from, *to;
    struct line_match match; /* each line's home instead of its match; empty: its own number */
    uint32_t *lines; /* of each function, and behind them of none: the last that was found */
    double gone_s;   /* CPU and idle seconds of lines that are gone */
    bool differs;    /* in text */
};

/* 0 or -ENOMEM. */
int line_homes_init(struct line_homes *homes, const struct report_file *from,
                    const struct report_file *to);
void line_homes_done(struct line_homes *homes);

/* A line's number in the kept text. */
int64_t line_homes_of_line(const struct line_homes *homes, int64_t lineno);

/* Where a function of that first line begins there. */
int64_t line_homes_of_function(const struct line_homes *homes, int64_t lineno);

enum function_kinship { KINSHIP_UNKNOWN, KINSHIP_SAME, KINSHIP_OTHER };

/* Is the function of the first line `lineno` the kept one of that first line? */
enum function_kinship line_homes_kinship(const struct line_homes *homes, int64_t lineno,
                                         int64_t kept_lineno);

/* The order of their texts; 0: equal. */
int file_text_compare(const struct report_file *a, const struct report_file *b);
