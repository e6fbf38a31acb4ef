/* Two profiles side by side as JSON: `metrics` says what there is to compare; what a profile does
 * not know is null. */
#pragma once

#include "output/compare/comparison.h"

#include <stdio.h>

struct diff_json_settings {
    const char *version, *old_name, *new_name;
    size_t top; /* rows of each list; 0: all */
};

/* 0 or -EIO. */
int diff_json_write(const struct comparison *comparison, const struct diff_json_settings *settings,
                    FILE *into);
