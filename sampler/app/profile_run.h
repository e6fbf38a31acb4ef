/* The verbs that profile over time: attach, launch, run. */
#pragma once

#include "sampler/app/options.h"

/* `version` is ours. 0 and the exit status of the contract, or a negative errno with `why`, where
 * the status is ours.
 */
int profile_run(const struct options *options, const char *version, int *ret_status,
                struct failure *why);
