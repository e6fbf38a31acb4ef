/* What options that were left open come to, for --print-config: a run with them said is the same.
 */
#pragma once

#include "sampler/app/options.h"

/* Where neither a process nor a command is named yet, as for a command that is started here. Texts
 * that come up lie in the arena. 0 or -ENOMEM. */
int options_settle(struct options *options);
