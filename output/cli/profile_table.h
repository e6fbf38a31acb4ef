/*
 * A report as a table for a terminal: what ran, then each file's lines with what they cost. Draws
 * from the report alone; nothing wraps, and nothing of the target's is passed through raw.
 */
#pragma once

#include "output/model/ranking.h"

#include <stdbool.h>
#include <stdio.h>

struct table_settings {
    size_t width; /* columns; between 20 and 500 */
    bool coloured;
    bool reduced;                 /* of lines that cost nothing, `...` */
    double cpu_percent_threshold; /* files and lines below both are left out */
    int64_t malloc_threshold;
    struct selection selection; /* with an order or a number, lists instead of files */
};

/* 0 or -ENOMEM; whether `out` took it all, ferror tells. */
int profile_table_write(FILE *out, const struct report *report,
                        const struct table_settings *settings);
