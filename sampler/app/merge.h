/* The verb `merge`: saved profiles as one. */
#pragma once

#include "sampler/base/error.h"

struct merge_request {
    const char *output;
    char *const *files;  /* one at least; ends with NULL */
    const char *version; /* ours */
    bool quiet;          /* no closing words */
};

/* 0, or a negative errno with `why` filled in. What is there under the output's name is replaced by
 * a whole profile or not at all. */
int merge_run(const struct merge_request *request, struct failure *why);
