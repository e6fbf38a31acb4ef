/*
 * Two profiles side by side on a terminal: the whole, then the files, functions and lines that
 * changed most. Nothing wraps, what is within the margins of sampling says so without colour, and
 * nothing of the target's is passed through raw.
 */
#pragma once

#include "output/compare/comparison.h"

#include <stdio.h>

struct diff_settings {
    size_t width; /* columns; between 40 and 500 */
    bool coloured;
    size_t top; /* rows of each kind; 0: all */
    const char *old_name, *new_name;
};

/* 0 or -ENOMEM; whether `out` took it all, ferror tells. */
int diff_table_write(FILE *out, const struct comparison *comparison,
                     const struct diff_settings *settings);
