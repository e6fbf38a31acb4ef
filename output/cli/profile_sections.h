/* What stands below the files of a report: the lines with most memory, the processes, the threads.
 * Each is left out where it has nothing to say. */
#pragma once

#include "output/model/ranking.h"

#include <stdbool.h>
#include <stdio.h>

/* Who asked for some lines gets only what is told of lines. 0 or -ENOMEM. */
int profile_sections_write(FILE *out, const struct report *report,
                           const struct selection *selection, size_t width, bool coloured);
