/* One dump for people: aligned, coloured where colour is wanted, nothing of the target's passed
 * through raw. */
#pragma once

#include "sampler/base/event.h"

#include <stdbool.h>
#include <stdio.h>

void dump_text_write(FILE *out, bool coloured, const struct dump_event *dump);
