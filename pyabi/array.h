/* Arrays of a reader that grow. Private to pyabi. */
#pragma once

#include <stddef.h>

/* Grows `*array` to hold `wanted` elements, at least to twice what it held. 0 or -ENOMEM. */
int array_reserve(void *array, size_t *capacity, size_t wanted, size_t element);
