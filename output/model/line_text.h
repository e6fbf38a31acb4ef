/* Lines of source by their texts: which are equal, which are alike, and which say enough to be
 * known again. White space at a line's end is none. */
#pragma once

#include "output/model/key_index.h"

#include <stdbool.h>

/* Without white space at its end. */
size_t line_text_length(const char *text);

/* What equal lines have in common, and no others in practice. */
struct key line_text_key(const char *text);

/* The key of so many bytes behind what another key is of; all zero: behind nothing. */
struct key line_text_key_add(struct key key, const char *text, size_t length);

/* A line that says enough to be known again elsewhere. */
bool line_is_telling(const char *text);

bool line_is_equal(const char *a, const char *b);

/* The same but for indentation, and telling. */
bool line_is_indented(const char *a, const char *b);

/* What both begin and end with is half of them, or more; indentation does not count. */
bool line_is_similar(const char *a, const char *b);
