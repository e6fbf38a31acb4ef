/* Text of a target made fit for a terminal: no control bytes, no broken UTF-8, its width known. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Copies with control characters as \xNN (and stray bytes as U+FFFD); always ends with NUL.
 * Returns columns.
 */
size_t screen_text(const char *text, char *into, size_t size);

/*
 * The same, with tabs expanded, in so many columns at most: what is longer (or does not go into
 * `size`, at least 8) is cut and ends with an ellipsis.
 */
size_t screen_text_fit(const char *text, size_t columns, char *into, size_t size);

/* The same; each byte of `into` came from the character at that byte of the text: `origins` has
 * `size`. */
size_t screen_text_map(const char *text, size_t columns, char *into, size_t size,
                       uint32_t *origins);
#define SCREEN_NOWHERE UINT32_MAX /* the ellipsis */

/* A path loses its first folders instead, for its end is what tells it from others. */
size_t screen_path_fit(const char *path, size_t columns, char *into, size_t size);
