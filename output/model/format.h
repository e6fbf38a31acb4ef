/* The text of a value, from its kind alone. kinds.ts of the page does the same;
 * tests/golden/format.txt binds both. */
#pragma once

#include "output/model/value.h"

/*
 * Writes at most `size` bytes with the NUL, like snprintf, and returns the whole text's length in
 * bytes. A value that says nothing (zero, an empty list, no text) is the empty text. Equal in every
 * locale that keeps the decimal point.
 */
size_t format_value(enum value_kind kind, const void *value, char *text, size_t size);

/* A timeline in so many cells at most, 64 at most; the kind's own text has 10. */
size_t format_spark(const struct point_list *points, size_t cells, char *text, size_t size);

/* Are values of this kind numbers, to be set flush right? */
bool format_is_number(enum value_kind kind);
