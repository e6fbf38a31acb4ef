#include "pyabi/array.h"

#include "sampler/base/error.h"

#include <stdlib.h>

int array_reserve(void *array, size_t *capacity, size_t wanted, size_t element)
{
    if (wanted <= *capacity)
        return 0;
    size_t grown = *capacity ? *capacity : 64;
    while (grown < wanted)
        grown *= 2;
    void *moved = realloc(*(void **)array, grown * element);
    if (!moved)
        return -ENOMEM;
    *(void **)array = moved;
    *capacity = grown;
    return 0;
}
