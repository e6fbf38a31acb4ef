/* Hooks of CPython's object allocator that do nothing but call what is below: what any hook costs.
 * To be preloaded; shim_cost.py builds it. */
#include "sampler/shim/python.h"

extern void PyMem_GetAllocator(int domain, struct allocator_functions *ret);
extern void PyMem_SetAllocator(int domain, struct allocator_functions *functions);

static struct allocator_functions below;

static void *hook_malloc(void *context, size_t size)
{
    const struct allocator_functions *allocator = context;
    return allocator->malloc(allocator->context, size);
}

static void *hook_calloc(void *context, size_t count, size_t size)
{
    const struct allocator_functions *allocator = context;
    return allocator->calloc(allocator->context, count, size);
}

static void *hook_realloc(void *context, void *old, size_t size)
{
    const struct allocator_functions *allocator = context;
    return allocator->realloc(allocator->context, old, size);
}

static void hook_free(void *context, void *address)
{
    const struct allocator_functions *allocator = context;
    allocator->free(allocator->context, address);
}

__attribute__((constructor)) static void hooks_set(void)
{
    struct allocator_functions ours = { &below, hook_malloc, hook_calloc, hook_realloc, hook_free };
    PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &below);
    PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &ours);
}
