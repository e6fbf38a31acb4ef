/* A line of source for a terminal: in so many columns, nothing of it passed through raw, its parts
 * in colours. */
#pragma once

#include "output/cli/style.h"
#include "output/model/source_colours.h"

/*
 * Without its line's end and the space before it. `style` colours all of it; STYLE_COUNT leaves
 * that to `colours`, which may be NULL, and to `line`, which counts from 0 there. Returns columns.
 */
size_t code_text_write(FILE *out, const char *code, size_t columns, bool coloured, enum style style,
                       const struct source_colours *colours, size_t line);
