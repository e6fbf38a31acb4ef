#include "sampler/shim/early.h"

#include "sampler/shim/blocks.h"

enum { SIZE = 1 << 14, ALIGNMENT = 16 };

static _Alignas(ALIGNMENT) char store[SIZE];
static size_t used;

void *early_allocate(size_t size)
{
    if (size > SIZE - used)
        return NULL;
    void *address = store + used;
    used += (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    blocks_mark(address);
    return address;
}

bool early_has(const void *address)
{
    return (const char *)address >= store && (const char *)address < store + SIZE;
}

size_t early_size(const void *address)
{
    return (size_t)(store + SIZE - (const char *)address);
}
