/* The verb `view`: a saved profile on a terminal. */
#pragma once

#include "output/model/ranking.h"
#include "sampler/app/report_load.h"
#include "sampler/base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct view_request {
    const char *file;    /* NULL: the usual one */
    const char *version; /* ours */
    bool reduced;        /* only lines that cost something */
    const char *page;    /* the format of a page to write instead; NULL: none */
    bool quiet;          /* no closing words for it */
    bool json;           /* a list of lines and functions instead of the table */
    double cpu_percent_threshold;
    int64_t malloc_threshold;
    struct selection selection;
};

/* 0, or a negative errno with `why` filled in. Prints on standard output. */
int view_run(const struct view_request *request, struct failure *why);
