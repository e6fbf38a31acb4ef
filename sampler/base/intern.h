/* One copy of each text, with an address that stays until the pool is emptied. Equal texts have
 * equal addresses. */
#pragma once

#include <stddef.h>

struct intern;

int intern_new(struct intern **ret);
void intern_free(struct intern *pool);

/* NULL when out of memory. */
const char *intern_text(struct intern *pool, const char *text);

/* Bytes held; whoever bounds the pool empties it at a moment when nobody holds a text. */
size_t intern_size(const struct intern *pool);
void intern_empty(struct intern *pool);
