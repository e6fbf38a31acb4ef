/* The verb `dump`: the stacks of all threads, once. */
#pragma once

#include "sampler/app/options.h"

/* 0, or a negative errno with `why` filled in. Prints on standard output only when all went well.
 */
int dump_run(const struct options *options, struct failure *why);
