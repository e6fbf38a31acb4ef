#define _GNU_SOURCE 1 /* dladdr1 */

#include "sampler/shim/python_hooks.h"

#include "sampler/shim/account.h"
#include "sampler/shim/arenas.h"
#include "sampler/shim/loaded_object.h"
#include "sampler/shim/records.h"

#include <dlfcn.h>
#include <string.h>

enum {
    LAYERS = 16, /* of ours around one another, with others between them */
    PYMALLOC_MOST = 512,
};

struct layer {
    struct allocator_functions below;
    enum allocation_domain domain;
    size_t extra;  /* what the one below asks for in addition */
    size_t alone;  /* to serve requests up to this the one below asks nobody who is hooked */
    bool mimalloc; /* is what is at the bottom, for all that does not come from malloc */
};

static const enum allocation_domain domains[PYMEM_DOMAINS] = {
    [PYMEM_DOMAIN_RAW] = DOMAIN_RAW,
    [PYMEM_DOMAIN_MEM] = DOMAIN_MEM,
    [PYMEM_DOMAIN_OBJ] = DOMAIN_OBJECT,
};
static struct layer layers[PYMEM_DOMAINS][LAYERS];
static unsigned layer_counts[PYMEM_DOMAINS];

static __attribute__((noinline)) void *layer_malloc_guarded(const struct layer *layer, size_t size)
{
    if (shim_thread.inside)
        return layer->below.malloc(layer->below.context, size);
    shim_thread.inside = true;
    void *address = layer->below.malloc(layer->below.context, size);
    shim_thread.inside = false;
    return account_allocated(address, size, layer->domain);
}

/* Now that it is known to be a sample it is subtracted once more, when there is an address. */
static __attribute__((noinline)) void *layer_malloc_sampled(const struct layer *layer, size_t size)
{
    shim_thread.countdown += (int64_t)size;
    return layer_malloc_guarded(layer, size);
}

/* Most of a program's blocks are small, and come from pymalloc: a subtraction and a jump. */
static void *layer_malloc(void *context, size_t size)
{
    const struct layer *layer = context;
    if (size - 1 >= layer->alone)
        return layer_malloc_guarded(layer, size);
    if (countdown_passes(size))
        return layer_malloc_sampled(layer, size);
    return layer->below.malloc(layer->below.context, size);
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
static size_t size_step(const struct layer *layer, size_t size)
{
    enum { ALIGNMENT = 16, MIMALLOC_EVEN = 64, MIMALLOC_MEDIUM = 128 << 10 };
    if (!layer->mimalloc)
        return size <= PYMALLOC_MOST ? ALIGNMENT : 1;
    if (size > MIMALLOC_MEDIUM)
        return mimalloc_large_step(size);
    if (size > MIMALLOC_EVEN)
        return (size_t)1 << (61 - __builtin_clzl(((size + 7) / 8 - 1) * 8));
    return ALIGNMENT;
}

static size_t size_given(const struct layer *layer, size_t size)
{
    size_t step = size_step(layer, size);
    return (size + step - 1) & ~(step - 1);
}

/*
 * Only the allocator below knows how large an unsampled block was. It is watched: where it left the
 * work to malloc, malloc_usable_size told before and after; where it moved the block, it copied the
 * old one whole, with all that it had given, or as much as is asked for now, when it shrank; where
 * it did neither, there was room. Without what is asked for in addition.
 */
static struct given_sizes sizes_watched(const struct layer *layer, const struct resize_watch *watch,
                                        bool moved, size_t size)
{
    size_t extra = layer->extra, given = size_given(layer, size + extra) - extra;
    size_t before = watch->usable_before, after = watch->usable_after, copied = watch->copied;
    if (before > extra && after > extra)
        return (struct given_sizes){ before - extra, after - extra, before - extra };
    if (!moved)
        return (struct given_sizes){ given, given, given };
    size_t half = size_step(layer, copied) / 2;
    if (copied <= extra + half || copied >= size + extra)
        return (struct given_sizes){ .after = given };
    return (struct given_sizes){ copied - extra, given, copied - extra - half };
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
    struct given_sizes given = sizes_watched(layer, &watch, new != old, size);
    resizing_end(&resizing, old, new, size, &given, layer->domain);
    return new;
}

/* ---- setting them ---- */

/* CPython's own, with a context that is a variable of its own, or none. */
static bool allocator_is_own(const struct allocator_functions *functions)
{
    return python_holds(&recorder.python, &functions->malloc) &&
           (!functions->context || python_holds(&recorder.python, &functions->context));
}

/* The debugging allocators' context begins with a letter for the domain (debug_alloc_api_t). */
static bool allocator_debugs(int domain, const struct allocator_functions *functions)
{
    static const char letters[] = { 'r', 'm', 'o' };
    return functions->context && allocator_is_own(functions) &&
           *(const size_t *)functions->context % 256 == (size_t)letters[domain];
}

/* What CPython's own stand around is in their context: first of all (tracemalloc), or behind a word
 * with a letter (the debugging ones). CPython: Modules/_tracemalloc.c, Python/tracemalloc.c,
 * Objects/obmalloc.c. */
static const struct allocator_functions *
functions_below(int domain, const struct allocator_functions *functions)
{
    const size_t *context = functions->context;
    return (const struct allocator_functions *)(context + allocator_debugs(domain, functions));
}

/* They keep three words with each block. */
static size_t allocator_extra(int domain, const struct allocator_functions *functions)
{
    return allocator_debugs(domain, functions) ? 3 * sizeof(size_t) : 0;
}

/*
 * Is it pymalloc that ours are put around, with nobody in between? Of all that CPython has, only
 * this is the same for objects and memory, needs no context, and is another for raw memory. Its
 * name may not be asked for before 3.12 is initialized (CPython: Objects/obmalloc.c).
 */
static bool pymalloc_is_below(void)
{
    struct allocator_functions raw, mem, obj;
    recorder.python.allocator_get(PYMEM_DOMAIN_RAW, &raw);
    recorder.python.allocator_get(PYMEM_DOMAIN_MEM, &mem);
    recorder.python.allocator_get(PYMEM_DOMAIN_OBJ, &obj);
    return !mem.context && !obj.context && mem.malloc == obj.malloc && mem.malloc != raw.malloc &&
           python_holds(&recorder.python, &mem.malloc) && arenas_guard();
}

/* What is below all of ours, and of those of CPython's that stand around others. */
static struct allocator_functions allocator_bottom(int domain)
{
    struct allocator_functions functions;
    recorder.python.allocator_get(domain, &functions);
    for (int depth = 0; depth < 2 * LAYERS; depth++) {
        if (functions.malloc == layer_malloc)
            functions = ((const struct layer *)functions.context)->below;
        else if (functions.context && allocator_is_own(&functions))
            functions = *functions_below(domain, &functions);
        else
            break;
    }
    return functions;
}

/* Of CPython's allocators only this is another for objects than for memory; a free-threaded build
 * has nothing else (CPython: Objects/obmalloc.c). */
static bool mimalloc_is_below(void)
{
    struct allocator_functions mem = allocator_bottom(PYMEM_DOMAIN_MEM);
    struct allocator_functions obj = allocator_bottom(PYMEM_DOMAIN_OBJ);
    bool own =
        python_holds(&recorder.python, &mem.malloc) && python_holds(&recorder.python, &obj.malloc);
    return recorder.python.free_threaded ||
           (own && !mem.context && !obj.context && mem.malloc != obj.malloc);
}

enum bottom { BOTTOM_OTHER, BOTTOM_PYMALLOC, BOTTOM_MIMALLOC };

static enum bottom bottom_find(void)
{
    if (pymalloc_is_below())
        return BOTTOM_PYMALLOC;
    return mimalloc_is_below() ? BOTTOM_MIMALLOC : BOTTOM_OTHER;
}

static struct layer layer_make(int domain, const struct allocator_functions *below,
                               enum bottom bottom)
{
    return (struct layer){
        .below = *below,
        .domain = domains[domain],
        .extra = allocator_extra(domain, below),
        .alone = bottom == BOTTOM_PYMALLOC && domain != PYMEM_DOMAIN_RAW ? PYMALLOC_MOST : 0,
        .mimalloc = bottom == BOTTOM_MIMALLOC,
    };
}

/* CPython puts others in place of ours for a moment and ours back again: what was put around the
 * same allocator before is used again. What is put around others may have ours below it, which then
 * ask whether they are inside. */
static struct layer *layer_around(int domain, const struct allocator_functions *below,
                                  enum bottom bottom)
{
    struct layer *all = layers[domain];
    for (unsigned i = 0; i < layer_counts[domain]; i++)
        if (all[i].below.context == below->context && all[i].below.malloc == below->malloc)
            return &all[i];
    if (layer_counts[domain] == LAYERS)
        return NULL;
    for (unsigned i = 0; i < layer_counts[domain]; i++)
        all[i].alone = 0;
    struct layer *layer = &all[layer_counts[domain]++];
    *layer = layer_make(domain, below, bottom);
    return layer;
}

static void allocator_wrap(int domain, enum bottom bottom)
{
    struct allocator_functions functions;
    recorder.python.allocator_get(domain, &functions);
    if (functions.malloc == layer_malloc)
        return;
    struct layer *layer = layer_around(domain, &functions, bottom);
    if (!layer)
        return;
    functions = (struct allocator_functions){ layer, layer_malloc, layer_calloc, layer_realloc,
                                              layer_free };
    recorder.python.allocator_set(domain, &functions);
}

/* Before it is initialized one thread runs, and nobody allocates while they are set. */
void python_hooks_look(void)
{
    if (!recorder.ring.head || !python_hooks_unsettled())
        return;
    enum bottom bottom = bottom_find();
    for (int domain = 0; domain < PYMEM_DOMAINS; domain++)
        allocator_wrap(domain, bottom);
}

static void python_found(const struct python *python)
{
    recorder.python = *python;
    atomic_store_explicit(&recorder.has_python, true, memory_order_release);
    python_hooks_look();
}

void python_hooks_begin(void)
{
    struct python python;
    if (python_find(recorder.ring.head, &python))
        python_found(&python);
}

/*
 * A program may load CPython at any time. Nothing tells of that but CPython itself, which makes a
 * key for its threads' states when it begins, and by then holds no lock: there it may be asked what
 * object that is. Hooks that hold locks of anybody's must not ask the loader for anything.
 */
void python_hooks_key_made(const void *caller)
{
    Dl_info info;
    struct link_map *map = NULL;
    struct loaded_object object;
    struct python python;
    if (!recorder.ring.head || recorder.attached ||
        atomic_load_explicit(&recorder.has_python, memory_order_acquire))
        return;
    struct stay stay = stay_begin();
    if (dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) && map &&
        loaded_object_read(map, &object) && python_read(&object, recorder.ring.head, &python)) {
        python_found(&python);
        account_look_soon();
    }
    stay_end(stay);
}

bool python_hooks_unsettled(void)
{
    return atomic_load_explicit(&recorder.has_python, memory_order_acquire) && !recorder.attached &&
           !recorder.python.is_initialized();
}

/* ---- in a process that ran already ---- */

/*
 * Threads allocate while ours are set, and whoever asks reads the context and the function one
 * after the other. So the context stays what it was, and ours ignore what they are given: each
 * mixture of old and new is right.
 */
static struct layer attached[PYMEM_DOMAINS];
static bool buried[PYMEM_DOMAINS]; /* others may be around ours since we went */

#define ATTACHED(domain, name)                                                                     \
    static void *name##_malloc(void *context, size_t size)                                         \
    {                                                                                              \
        (void)context;                                                                             \
        return layer_malloc(&attached[domain], size);                                              \
    }                                                                                              \
    static void *name##_calloc(void *context, size_t count, size_t size)                           \
    {                                                                                              \
        (void)context;                                                                             \
        return layer_calloc(&attached[domain], count, size);                                       \
    }                                                                                              \
    static void *name##_realloc(void *context, void *old, size_t size)                             \
    {                                                                                              \
        (void)context;                                                                             \
        return layer_realloc(&attached[domain], old, size);                                        \
    }                                                                                              \
    static void name##_free(void *context, void *address)                                          \
    {                                                                                              \
        (void)context;                                                                             \
        layer_free(&attached[domain], address);                                                    \
    }

ATTACHED(PYMEM_DOMAIN_RAW, raw)
ATTACHED(PYMEM_DOMAIN_MEM, mem)
ATTACHED(PYMEM_DOMAIN_OBJ, obj)

#define ATTACHED_ROW(name)                                                                         \
    {                                                                                              \
        NULL, name##_malloc, name##_calloc, name##_realloc, name##_free                            \
    }

static const struct allocator_functions ours[PYMEM_DOMAINS] = {
    [PYMEM_DOMAIN_RAW] = ATTACHED_ROW(raw),
    [PYMEM_DOMAIN_MEM] = ATTACHED_ROW(mem),
    [PYMEM_DOMAIN_OBJ] = ATTACHED_ROW(obj),
};

enum standing { ON_TOP, BELOW_OTHERS, GONE, UNKNOWN };

static bool functions_equal(const struct allocator_functions *a,
                            const struct allocator_functions *b)
{
    return a->malloc == b->malloc && a->context == b->context;
}

static enum standing standing_of(int domain)
{
    struct allocator_functions functions;
    recorder.python.allocator_get(domain, &functions);
    for (int depth = 0; depth < LAYERS; depth++) {
        if (functions.malloc == ours[domain].malloc)
            return depth ? BELOW_OTHERS : ON_TOP;
        if (functions_equal(&functions, &attached[domain].below) && functions.malloc)
            return GONE;
        if (!allocator_is_own(&functions))
            return UNKNOWN;
        if (!functions.context)
            return GONE;
        functions = *functions_below(domain, &functions);
    }
    return UNKNOWN;
}

static void domain_attach(int domain, enum bottom bottom)
{
    struct allocator_functions functions;
    recorder.python.allocator_get(domain, &functions);
    attached[domain] = layer_make(domain, &functions, bottom);
    functions =
        (struct allocator_functions){ functions.context, ours[domain].malloc, ours[domain].calloc,
                                      ours[domain].realloc, ours[domain].free };
    recorder.python.allocator_set(domain, &functions);
}

/* Those of ours that are below others still count, from where they are; and so may those of which
 * nobody knows, which would end below themselves if they were put around them. */
bool python_hooks_attach(void)
{
    enum bottom bottom = bottom_find();
    bool whole = true;
    for (int domain = 0; domain < PYMEM_DOMAINS; domain++) {
        enum standing standing = standing_of(domain);
        if (standing == GONE || (standing == UNKNOWN && !buried[domain]))
            domain_attach(domain, bottom);
        else
            whole &= standing != UNKNOWN;
    }
    return whole;
}

bool python_hooks_detach(void)
{
    bool kept = false, whole = true;
    for (int domain = 0; domain < PYMEM_DOMAINS; domain++) {
        enum standing standing = standing_of(domain);
        if (standing == ON_TOP)
            recorder.python.allocator_set(domain, &attached[domain].below);
        buried[domain] = standing == BELOW_OTHERS || standing == UNKNOWN;
        kept |= buried[domain];
        whole &= standing == ON_TOP || standing == BELOW_OTHERS;
    }
    if (!kept)
        arenas_leave();
    return whole;
}
