#define _GNU_SOURCE 1 /* dl_iterate_phdr */

#include "sampler/shim/python_hooks.h"

#include "sampler/shim/account.h"
#include "sampler/shim/records.h"

#include <link.h>

enum {
    LAYERS = 16,  /* of ours around one another, with others between them */
    RECENT = 256, /* a power of two */
};

struct layer {
    struct allocator_functions below;
    enum allocation_domain domain;
};

static const enum allocation_domain domains[PYMEM_DOMAINS] = {
    [PYMEM_DOMAIN_RAW] = DOMAIN_RAW,
    [PYMEM_DOMAIN_MEM] = DOMAIN_MEM,
    [PYMEM_DOMAIN_OBJ] = DOMAIN_OBJECT,
};
static struct layer layers[PYMEM_DOMAINS][LAYERS];
static unsigned layer_counts[PYMEM_DOMAINS];

static void *layer_malloc(void *context, size_t size)
{
    const struct layer *layer = context;
    if (shim_thread.inside)
        return layer->below.malloc(layer->below.context, size);
    shim_thread.inside = true;
    void *address = layer->below.malloc(layer->below.context, size);
    shim_thread.inside = false;
    return account_allocated(address, size, layer->domain);
}

static void *layer_calloc(void *context, size_t count, size_t size)
{
    const struct layer *layer = context;
    if (shim_thread.inside)
        return layer->below.calloc(layer->below.context, count, size);
    shim_thread.inside = true;
    void *address = layer->below.calloc(layer->below.context, count, size);
    shim_thread.inside = false;
    return account_allocated(address, count * size, layer->domain);
}

static __attribute__((noinline)) void layer_free_sampled(const struct layer *layer, void *address)
{
    if (account_free(address))
        layer->below.free(layer->below.context, address);
}

static void layer_free(void *context, void *address)
{
    const struct layer *layer = context;
    if (UNLIKELY(blocks_may_have(address)))
        layer_free_sampled(layer, address);
    else
        layer->below.free(layer->below.context, address);
}

/* ---- resizing ---- */

/*
 * By how much an unsampled block grows when CPython resizes it: only the allocator below knows how
 * large it was. It is watched: where it left the work to malloc, malloc_usable_size told before and
 * after; where it moved the block, it copied the old one whole; where it did neither, the block had
 * room. The old size is then rounded up to what the allocator gave, and a list that grows
 * a hundred times would lose that rounding a hundred times: so the size that was asked for when an
 * address was resized last is remembered for a while, and taken where it goes with what was copied.
 * What is left is the rounding of the first size, once for each block.
 */
struct recent {
    _Atomic uintptr_t address;
    _Atomic size_t size;
};

static struct recent recents[RECENT];

static struct recent *recent_at(const void *address)
{
    return &recents[((uintptr_t)address >> 4 ^ (uintptr_t)address >> 12) & (RECENT - 1)];
}

static void recent_set(const void *address, size_t size)
{
    struct recent *recent = recent_at(address);
    atomic_store_explicit(&recent->address, (uintptr_t)address, memory_order_relaxed);
    atomic_store_explicit(&recent->size, size, memory_order_relaxed);
}

/* 0: not known. Another block may have got the address since, or two threads may have met here:
 * what does not go with the allocator's own size is not taken. */
static size_t recent_find(const void *address, size_t held)
{
    enum { ROUNDING = 64 };
    const struct recent *recent = recent_at(address);
    if (atomic_load_explicit(&recent->address, memory_order_relaxed) != (uintptr_t)address)
        return 0;
    size_t size = atomic_load_explicit(&recent->size, memory_order_relaxed);
    return size <= held && size + size / 4 + ROUNDING >= held ? size : 0;
}

static size_t growth_watched(const struct resize_watch *watch, const void *old, const void *new,
                             size_t size)
{
    if (watch->usable_before)
        return watch->usable_after > watch->usable_before
                   ? watch->usable_after - watch->usable_before
                   : 0;
    size_t held = new == old ? size : watch->copied;
    size_t before = recent_find(old, held);
    if (!before)
        before = held;
    recent_set(new, size);
    return before && size > before ? size - before : 0;
}

static void *layer_realloc(void *context, void *old, size_t size)
{
    const struct layer *layer = context;
    if (shim_thread.inside)
        return layer->below.realloc(layer->below.context, old, size);
    if (!old)
        return layer_malloc(context, size);
    struct resizing resizing;
    struct resize_watch watch = { 0 };
    int64_t copy_countdown = shim_thread.copy_countdown;
    resizing_begin(&resizing, old);
    shim_thread.inside = true;
    shim_thread.watch = &watch;
    shim_thread.copy_countdown = INT64_MIN / 2; /* each copy is looked at: account_copy() */
    void *new = layer->below.realloc(layer->below.context, old, size);
    shim_thread.copy_countdown = copy_countdown;
    shim_thread.watch = NULL;
    shim_thread.inside = false;
    size_t growth = new && !resizing.sampled ? growth_watched(&watch, old, new, size) : 0;
    resizing_end(&resizing, old, new, size, growth, layer->domain);
    return new;
}

/* ---- setting them ---- */

/* CPython puts others in place of ours for a moment and ours back again: what was put around the
 * same allocator before is used again. */
static struct layer *layer_around(int domain, const struct allocator_functions *below)
{
    struct layer *all = layers[domain];
    for (unsigned i = 0; i < layer_counts[domain]; i++)
        if (all[i].below.context == below->context && all[i].below.malloc == below->malloc)
            return &all[i];
    if (layer_counts[domain] == LAYERS)
        return NULL;
    struct layer *layer = &all[layer_counts[domain]++];
    *layer = (struct layer){ *below, domains[domain] };
    return layer;
}

static void allocator_wrap(int domain)
{
    struct allocator_functions functions;
    recorder.python.allocator_get(domain, &functions);
    if (functions.malloc == layer_malloc)
        return;
    struct layer *layer = layer_around(domain, &functions);
    if (!layer)
        return;
    functions = (struct allocator_functions){ layer, layer_malloc, layer_calloc, layer_realloc,
                                              layer_free };
    recorder.python.allocator_set(domain, &functions);
}

/* How many objects were ever loaded: the first that is listed tells. */
static int loads_tell(struct dl_phdr_info *info, size_t size, void *ret)
{
    (void)size;
    *(unsigned long long *)ret = info->dlpi_adds;
    return 1;
}

static void python_look(void)
{
    static _Atomic unsigned long long seen;
    unsigned long long loads = 0;
    dl_iterate_phdr(loads_tell, &loads);
    unsigned long long last = atomic_load(&seen);
    /* who counts on is the one that looks */
    if (loads == last || !atomic_compare_exchange_strong(&seen, &last, loads))
        return;
    if (python_find(recorder.ring.head, &recorder.python))
        atomic_store_explicit(&recorder.has_python, true, memory_order_release);
}

/* Before it is initialized one thread runs, and nobody allocates while they are set. */
void python_hooks_look(void)
{
    if (!recorder.ring.head)
        return;
    if (!atomic_load_explicit(&recorder.has_python, memory_order_acquire))
        python_look();
    if (python_hooks_unsettled())
        for (int domain = 0; domain < PYMEM_DOMAINS; domain++)
            allocator_wrap(domain);
}

bool python_hooks_unsettled(void)
{
    return atomic_load_explicit(&recorder.has_python, memory_order_acquire) &&
           !recorder.python.is_initialized();
}
