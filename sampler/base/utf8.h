/* UTF-8 that may be broken: names and paths of a target are bytes, and what we write is not. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What stands for a byte that is part of no character. */
#define UTF8_REPLACEMENT "\xEF\xBF\xBD"

/* The character that a NUL-terminated text begins with: its bytes, or 0 when it begins with none.
 */
size_t utf8_decode(const char *text, uint32_t *ret_character);

bool utf8_is_valid(const char *text);

/* A new text with replacements in it, which the caller frees; NULL when out of memory. */
char *utf8_repair(const char *text);
