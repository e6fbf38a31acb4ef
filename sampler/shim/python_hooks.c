#define _GNU_SOURCE 1 /* dladdr, dl_iterate_phdr */

#include "sampler/shim/python_hooks.h"

#include "sampler/shim/account.h"
#include "sampler/shim/records.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

enum {
    LAYERS = 16, /* of ours around one another, with others between them */
};

struct layer {
    struct allocator_functions below;
    enum allocation_domain domain;
    size_t extra; /* what the one below asks for in addition */
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

/* Where mimalloc gives larger pieces in larger steps (CPython: Objects/mimalloc/os.c). */
static size_t mimalloc_large_step(size_t size)
{
    static const struct {
        size_t below, step;
    } steps[] = {
        { 512 << 10, 4 << 10 }, { 2 << 20, 64 << 10 }, { 8 << 20, 256 << 10 }, { 32 << 20, 1 << 20 }
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (size < steps[i].below)
            return steps[i].step;
    return 4 << 20;
}

/* What CPython's own allocators give who asks for `size`: pymalloc multiples of 16 bytes up to 512,
 * mimalloc four sizes between a power of two and the next (CPython: Objects/obmalloc.c,
 * Objects/mimalloc/page-queue.c). */
static size_t size_given(size_t size)
{
    enum { ALIGNMENT = 16, PYMALLOC_MOST = 512, MIMALLOC_EVEN = 64, MIMALLOC_MEDIUM = 128 << 10 };
    size_t step = ALIGNMENT;
    if (!recorder.python.free_threaded)
        step = size <= PYMALLOC_MOST ? ALIGNMENT : 1;
    else if (size > MIMALLOC_MEDIUM)
        step = mimalloc_large_step(size);
    else if (size > MIMALLOC_EVEN)
        step = (size_t)1 << (61 - __builtin_clzl(((size + 7) / 8 - 1) * 8));
    return (size + step - 1) & ~(step - 1);
}

/*
 * By how much an unsampled block grows when CPython resizes it: only the allocator below knows how
 * large it was. It is watched: where it left the work to malloc, malloc_usable_size told before and
 * after; where it moved the block, it copied the old one whole, with all that it had given; where
 * it did neither, there was room. Sizes given are compared with sizes given, so that what was
 * rounded cancels out over any number of steps, all but the first and the last.
 */
static size_t growth_watched(const struct layer *layer, const struct resize_watch *watch,
                             const void *old, const void *new, size_t size)
{
    size_t before = watch->usable_before, after = watch->usable_after;
    size_t asked = size + layer->extra;
    if (!before && new != old && watch->copied < asked) { /* as much: it shrank */
        before = watch->copied;
        after = size_given(asked);
    }
    return before && after > before ? after - before : 0;
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
    size_t growth = new && !resizing.sampled ? growth_watched(layer, &watch, old, new, size) : 0;
    resizing_end(&resizing, old, new, size, growth, layer->domain);
    return new;
}

/* ---- setting them ---- */

/* The debugging allocators keep three words with each block. They are known by their context, a
 * variable of CPython's own that begins with a letter for the domain (debug_alloc_api_t). */
static size_t allocator_extra(int domain, const struct allocator_functions *functions)
{
    static const char letters[] = { 'r', 'm', 'o' };
    Dl_info code, data;
    void *function;
    memcpy(&function, &functions->malloc, sizeof function);
    if (!functions->context || !dladdr(functions->context, &data) || !dladdr(function, &code) ||
        code.dli_fbase != data.dli_fbase)
        return 0;
    return *(const char *)functions->context == letters[domain] ? 3 * sizeof(size_t) : 0;
}

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
    *layer = (struct layer){ *below, domains[domain], allocator_extra(domain, below) };
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
    if (!python_hooks_unsettled())
        return;
    for (int domain = 0; domain < PYMEM_DOMAINS; domain++)
        allocator_wrap(domain);
}

bool python_hooks_unsettled(void)
{
    return atomic_load_explicit(&recorder.has_python, memory_order_acquire) &&
           !recorder.python.is_initialized();
}
