/*
 * malloc and its family, and mmap's. Nearly always a call that is passed on and a subtraction; what
 * an allocator calls in turn is passed on alone.
 */
#define _GNU_SOURCE 1 /* RTLD_NEXT, dladdr1, mremap */

#include "sampler/shim/hooks.h"

#include "sampler/shim/account.h"
#include "sampler/shim/early.h"
#include "sampler/shim/loaded_object.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void free_early(void *address);

/* Of two that everything calls it is not asked each time whether they are known yet. */
struct next_functions next = { .free = free_early, .memmove = memmove_early };

bool hooks_pass_by;

/* ---- before the next functions are known ---- */

static void *early_move(const void *old, size_t size)
{
    void *new = malloc(size);
    size_t most = early_size(old);
    if (new)
        memcpy(new, old, size < most ? size : most);
    return new;
}

typedef void *function_find(const char *name);

static void *find_next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

struct definition {
    const char *name;
    void *found;
};

/* Not ours, and none that the loader would have to ask for the function first. */
static bool definition_look(const struct loaded_object *object, void *argument)
{
    struct definition *definition = argument;
    if (loaded_object_holds(object, &next))
        return false;
    const ElfW(Sym) *symbol = loaded_object_define(object, definition->name);
    if (symbol && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC)
        definition->found = (void *)(object->base + symbol->st_value);
    return definition->found != NULL;
}

static bool is_ours(const void *function)
{
    Dl_info info, own;
    return dladdr(function, &info) && dladdr(&next, &own) && info.dli_fbase == own.dli_fbase;
}

/*
 * Whoever is first for all. Where a program that is not position-independent takes a function's
 * address, that address is a place in the program which jumps to the function by an import: then
 * the import would lead to us, and we back there. So the first that defines it is looked for.
 */
static void *find_first(const char *name)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    struct definition definition = { name, NULL };
    void *found = dlsym(RTLD_DEFAULT, name);
    if (found && is_ours(found))
        return find_next(name);
    bool told = found && dladdr1(found, &info, (void **)&symbol, RTLD_DL_SYMENT);
    if (!told || !symbol || symbol->st_shndx != SHN_UNDEF)
        return found;
    loaded_objects_walk(definition_look, &definition);
    return definition.found ? definition.found : find_next(name);
}

/* dlsym gives a data pointer: what it points to is copied, not cast. */
static void function_set(function_find *find, const char *name, void *ret)
{
    void *found = find(name);
    __builtin_memcpy(ret, &found, sizeof found);
}

static void next_find(function_find *find)
{
    struct next_functions found;
#define HOOK(type, name, parameters) function_set(find, #name, &found.name);
#include "sampler/shim/hooks.def"
#undef HOOK
    function_set(find, "malloc_usable_size", &found.malloc_usable_size);
    next = found;
}

/* An allocator that is linked into the program comes before every library, so that nobody's blocks
 * are ours to know; of what it lacks some names still lead to us. */
static bool program_has_allocator(void)
{
    struct loaded_object program;
    return loaded_program_read(&program) && loaded_object_define(&program, "malloc");
}

void hooks_resolve(void)
{
    static bool resolving;
    if (resolving)
        return;
    resolving = true;
    next_find(find_next);
    operators_withdraw(false);
    hooks_pass_by = program_has_allocator();
}

void hooks_resolve_attached(void)
{
    next_find(find_first);
    operators_withdraw(true); /* whom a program lets all others find, they may find there, too */
}

/* Nothing was allocated yet that libc could free. */
static void free_early(void *address)
{
    (void)address;
}

static bool is_ready(void)
{
    if (UNLIKELY(!next.malloc))
        hooks_resolve();
    return next.malloc;
}

/* ---- malloc ---- */

/* The rest of a hook that asks the next function for a block: `size` is what is asked for. */
#define PASS_ON(call, size)                                                                        \
    do {                                                                                           \
        if (shim_thread.inside)                                                                    \
            return call;                                                                           \
        shim_thread.inside = true;                                                                 \
        void *block_ = call;                                                                       \
        shim_thread.inside = false;                                                                \
        return account_allocated(block_, size, DOMAIN_NATIVE);                                     \
    } while (0)

HOOK_EXPORTED void *malloc(size_t size)
{
    if (UNLIKELY(!is_ready()))
        return early_allocate(size);
    PASS_ON(next.malloc(size), size);
}

HOOK_EXPORTED void *calloc(size_t count, size_t size)
{
    if (UNLIKELY(!is_ready()))
        return size && count > SIZE_MAX / size ? NULL : early_allocate(count * size);
    PASS_ON(next.calloc(count, size), count * size);
}

static __attribute__((noinline)) void free_sampled(void *address)
{
    if (account_free(address))
        next.free(address);
}

HOOK_EXPORTED void free(void *address)
{
    if (UNLIKELY(blocks_may_have(address)))
        free_sampled(address);
    else
        next.free(address);
}

static size_t usable_size(void *address)
{
    return address && next.malloc_usable_size ? next.malloc_usable_size(address) : 0;
}

/* Who was asked is asked: an allocator may have the one and lack the other. */
struct resize_call {
    void *old;
    size_t count, size; /* 1 unless it is an array */
    bool is_array;
};

static void *resize_pass_on(const struct resize_call *call)
{
    return call->is_array && next.reallocarray
               ? next.reallocarray(call->old, call->count, call->size)
               : next.realloc(call->old, call->count * call->size);
}

/* Below an allocator of CPython: it is watched how large the block was. */
static void *resize_watched(const struct resize_call *call)
{
    struct resize_watch *watch = shim_thread.watch;
    if (!watch)
        return resize_pass_on(call);
    watch->usable_before = usable_size(call->old);
    void *new = resize_pass_on(call);
    watch->usable_after = usable_size(new);
    return new;
}

static void *resize_counted(const struct resize_call *call)
{
    void *old = call->old;
    size_t size = call->count * call->size;
    struct resizing resizing;
    resizing_begin(&resizing, old);
    struct given_sizes given = { .before = resizing.sampled ? 0 : usable_size(old) };
    given.likely = given.before;
    int64_t copy_countdown = shim_thread.copy_countdown;
    shim_thread.inside = true;
    void *new = resize_pass_on(call);
    shim_thread.inside = false;
    shim_thread.copy_countdown = copy_countdown; /* what is moved is no copy of the program's */
    if (resizing.sampled && !new && !size) {     /* that was a free */
        account_ended(&resizing.block);
        return new;
    }
    given.after = resizing.sampled ? 0 : usable_size(new);
    resizing_end(&resizing, old, new, size, &given, DOMAIN_NATIVE);
    return new;
}

static void *resize(const struct resize_call *call)
{
    size_t size = call->count * call->size;
    if (UNLIKELY(hooks_pass_by) && is_ready())
        return resize_pass_on(call);
    if (!call->old)
        return malloc(size);
    if (UNLIKELY(early_has(call->old)))
        return early_move(call->old, size);
    return !is_ready() || shim_thread.inside ? resize_watched(call) : resize_counted(call);
}

HOOK_EXPORTED void *realloc(void *old, size_t size)
{
    const struct resize_call call = { .old = old, .count = 1, .size = size };
    return resize(&call);
}

HOOK_EXPORTED void *reallocarray(void *old, size_t count, size_t size)
{
    const struct resize_call call = { .old = old, .count = count, .size = size, .is_array = true };
    size_t whole;
    if (__builtin_mul_overflow(count, size, &whole)) {
        errno = ENOMEM;
        return NULL;
    }
    return resize(&call);
}

HOOK_EXPORTED void *memalign(size_t alignment, size_t size)
{
    if (UNLIKELY(!is_ready()))
        return NULL;
    PASS_ON(next.memalign(alignment, size), size);
}

HOOK_EXPORTED void *aligned_alloc(size_t alignment, size_t size)
{
    if (UNLIKELY(!is_ready()))
        return NULL;
    PASS_ON(next.aligned_alloc(alignment, size), size);
}

HOOK_EXPORTED int posix_memalign(void **ret, size_t alignment, size_t size)
{
    if (UNLIKELY(!is_ready()))
        return ENOMEM;
    if (shim_thread.inside)
        return next.posix_memalign(ret, alignment, size);
    shim_thread.inside = true;
    int error = next.posix_memalign(ret, alignment, size);
    shim_thread.inside = false;
    if (!error)
        account_allocated(*ret, size, DOMAIN_NATIVE);
    return error;
}

HOOK_EXPORTED void *valloc(size_t size)
{
    if (UNLIKELY(!is_ready()))
        return NULL;
    PASS_ON(next.valloc(size), size);
}

HOOK_EXPORTED void *pvalloc(size_t size)
{
    if (UNLIKELY(!is_ready()))
        return NULL;
    PASS_ON(next.pvalloc(size), size);
}

/* ---- mmap ---- */

/* Memory that is asked for, rather than a file that is looked at or space that is kept free. */
static bool is_memory(int access, int flags)
{
    return flags & MAP_ANONYMOUS && access & PROT_WRITE && !(flags & MAP_NORESERVE);
}

static void *mapped(void *address, size_t size, int access, int flags)
{
    if (address == MAP_FAILED || shim_thread.inside)
        return address;
    if (flags & MAP_FIXED)
        account_unmapped(address, size);
    if (is_memory(access, flags))
        account_mapped(address, size);
    return address;
}

HOOK_EXPORTED void *mmap(void *wish, size_t size, int access, int flags, int fd, off_t offset)
{
    if (UNLIKELY(!is_ready()))
        return MAP_FAILED;
    return mapped(next.mmap(wish, size, access, flags, fd, offset), size, access, flags);
}

HOOK_EXPORTED void *mmap64(void *wish, size_t size, int access, int flags, int fd, off64_t offset)
{
    if (UNLIKELY(!is_ready()))
        return MAP_FAILED;
    return mapped(next.mmap64(wish, size, access, flags, fd, offset), size, access, flags);
}

/* Before the address may be another's. What cannot be unmapped is hardly ever the program's. */
HOOK_EXPORTED int munmap(void *address, size_t size)
{
    if (UNLIKELY(!is_ready()))
        return -1;
    if (!shim_thread.inside)
        account_unmapped(address, size);
    return next.munmap(address, size);
}

HOOK_EXPORTED void *mremap(void *old, size_t old_size, size_t size, int flags, ...)
{
    va_list rest;
    if (UNLIKELY(!is_ready()))
        return MAP_FAILED;
    va_start(rest, flags);
    void *wish = flags & MREMAP_FIXED ? va_arg(rest, void *) : NULL;
    va_end(rest);
    void *new = next.mremap(old, old_size, size, flags, wish);
    if (new != MAP_FAILED && !shim_thread.inside)
        account_remapped(old, old_size, new, size);
    return new;
}
