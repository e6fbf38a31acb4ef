/* The text of a value, from its kind alone. kinds.ts of the page does the same; one golden file
 * binds both. */
#pragma once

#include "output/model/value.h"

/*
 * Writes at most `size` bytes with the NUL, like snprintf, and returns the text's length in bytes.
 * A value that says nothing (zero, an empty list, no text) is the empty text.
 */
size_t format_value(enum value_kind kind, const void *value, char *text, size_t size);

/* Are numbers of this kind set flush right? */
bool format_is_right(enum value_kind kind);
