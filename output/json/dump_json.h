/* One dump as JSON: the contract's `dump --json`. */
#pragma once

#include "sampler/base/event.h"

/* The whole text with a newline at its end; the caller frees it. NULL when out of memory. */
char *dump_json_write(const struct dump_event *dump);
