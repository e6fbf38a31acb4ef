/* Text of a target made fit for a terminal: no control bytes, no broken UTF-8, and its width known. */
#pragma once

#include <stddef.h>

/* Copies with control characters as \xNN (and stray bytes as U+FFFD); always ends with NUL. Returns columns. */
size_t screen_text(const char *text, char *into, size_t size);
