/* How wide a terminal is. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* COLUMNS of the environment, else what the terminal says (behind a pipe to a pager, it is that of
 * standard error or input), else 132. */
size_t screen_width(FILE *out);
