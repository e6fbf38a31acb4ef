/* The verb `view`: a saved profile on a terminal. */
#pragma once

#include "sampler/base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* What a profile is called where nothing else was asked for. */
#define VIEW_USUAL_FILE "scalene-profile.json"

struct view_request {
    const char *file;    /* NULL: the usual one */
    const char *version; /* ours */
    bool reduced;        /* only lines that cost something */
    double cpu_percent_threshold;
    int64_t malloc_threshold;
};

/* 0, or a negative errno with `why` filled in. Prints on standard output. */
int view_run(const struct view_request *request, struct failure *why);
