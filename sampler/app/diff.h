/* The verb `diff`: two saved profiles side by side, and limits to how far they may differ. */
#pragma once

#include "sampler/base/error.h"

#include <stdint.h>

struct diff_request {
    const char *old_file, *new_file;
    const char *version; /* ours */
    const char *output;  /* NULL or "-": standard output; NULL of a page: the new one's name */
    const char *limits;  /* parted by commas; NULL: none */
    bool json, html;     /* instead of the table */
    bool quiet;          /* no closing words */
    int64_t top;         /* rows of each kind; 0: all; negative: 10, of JSON all */
};

/*
 * 0, and as status 1 where a limit was exceeded, which standard error says; or a negative errno
 * with `why` filled in, -EINVAL where the request itself is wrong.
 */
int diff_run(const struct diff_request *request, int *ret_status, struct failure *why);
