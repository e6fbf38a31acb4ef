/* How far a misspelt word is from another. */
#pragma once

#include <stddef.h>

/* Edits (insert, delete, replace) that turn one word into the other; of long ones, their
 * beginnings.
 */
size_t word_distance(const char *a, const char *b);
