/* The verbs that steer a profiler which runs elsewhere: on, off, flush, stop, status. */
#pragma once

#include "sampler/app/options.h"

/* 0, or the sentence of the profiler or about it in `why`; -ENOENT: nobody profiles that process.
 */
int steering_run(const struct options *options, struct failure *why);

/* `--on --pid N` and `--off --pid N`: the same where somebody profiles that process already. */
bool steering_is_meant(const struct options *options);
