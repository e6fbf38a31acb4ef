/*
 * The options that a file in YAML gives: keys are the long names, with - or _ inside. It is read by
 * libyaml as events, so that nothing of it is built up; what is no plain list of options is an
 * error with its line. Anything may stand in such a file.
 */
#pragma once

#include "sampler/app/option_rows.h"

#include <stdio.h>

/* Which rows were given a value. */
struct option_set {
    bool has[OPTION_COUNT];
};

/*
 * What the file says of options that `said` has not: the command line beats the file. 0, or -EINVAL
 * with a sentence that begins with the file and the line; `options` may then be half filled.
 */
int config_read(const char *file, const struct option_set *said, struct options *options,
                struct failure *why);

/* The same of a text that is called `file`. */
int config_parse(const char *text, size_t size, const char *file, const struct option_set *said,
                 struct options *options, struct failure *why);

/* All options that go with the verb, as a file that gives the same. 0 or -EIO. */
int config_write(const struct options *options, FILE *into);
