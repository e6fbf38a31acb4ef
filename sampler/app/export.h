/* The verb `export`: a saved profile in another format. */
#pragma once

#include "sampler/base/error.h"

#include <stdbool.h>

struct export_request {
    const char *file;    /* NULL: the usual one */
    const char *version; /* ours */
    const char *format;  /* NULL: the output's extension tells */
    const char *output;  /* NULL, or "-": standard output */
    bool quiet;          /* no closing words */
};

/* 0, or a negative errno with `why` filled in. */
int export_run(const struct export_request *request, struct failure *why);
