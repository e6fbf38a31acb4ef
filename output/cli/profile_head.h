/* What stands above and below the table of a report: the run as a whole, and the notes. */
#pragma once

#include "output/model/report.h"

#include <stdbool.h>
#include <stdio.h>

/* What is not known is left out. */
void profile_head_write(FILE *out, const struct report *report, size_t width, bool coloured);

void profile_notes_write(FILE *out, const struct report *report, size_t width, bool coloured);
