/*
 * C++'s operator new and delete. Those of jemalloc, tcmalloc and mimalloc do not call malloc; what
 * libstdc++'s call is inside. Ours are there only where another was from the start: a library
 * that is loaded later brings its own, and must find that one, with its own exceptions and its own
 * delete.
 */
#define _GNU_SOURCE 1 /* dladdr1 */

#include "sampler/shim/hooks.h"

#include "sampler/shim/account.h"
#include "sampler/shim/loaded_object.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- an exception in our frame ---- */

/*
 * The next one may throw, and then we are not come back to. Who unwinds asks each frame's
 * "personality" (Itanium C++ ABI, exceptions): ours does all that there is to do in the second
 * phase, and has the frame left. A cleanup of the compiler's would need libgcc's.
 */
__attribute__((used)) static int frame_leave(int version, int actions, uint64_t class,
                                             void *exception, void *context)
{
    enum { UA_CLEANUP_PHASE = 2, URC_CONTINUE_UNWIND = 8 };
    (void)version, (void)class, (void)exception, (void)context;
    if (actions & UA_CLEANUP_PHASE)
        shim_thread.inside = false;
    return URC_CONTINUE_UNWIND;
}

/* For the function that this stands in; the number says how the address is stored: relative, in 4
 * bytes (DW_EH_PE_pcrel | DW_EH_PE_sdata4). */
#define LEAVE_WHEN_THROWN() __asm__ volatile(".cfi_personality 0x1b, frame_leave")

/* ---- new and delete ---- */

/* Nobody has one, and yet it is called, by who was linked with ours: as if it were there or not. */
#define IS_KNOWN(name) (!UNLIKELY(!next.name) || (hooks_resolve(), next.name))

/* Who is inside already is apart: that frame must not be the one that is left. */
#define NEW(name, parameters, arguments, alignment)                                                \
    static __attribute__((noinline)) void *counted##name parameters                                \
    {                                                                                              \
        LEAVE_WHEN_THROWN();                                                                       \
        shim_thread.inside = true;                                                                 \
        void *block = next.name arguments;                                                         \
        shim_thread.inside = false;                                                                \
        return account_allocated(block, size, DOMAIN_NATIVE);                                      \
    }                                                                                              \
    HOOK_EXPORTED void *name parameters                                                            \
    {                                                                                              \
        if (!IS_KNOWN(name))                                                                       \
            return memalign(alignment, size);                                                      \
        return shim_thread.inside ? next.name arguments : counted##name arguments;                 \
    }

#define PLAIN (size_t size), (size), _Alignof(max_align_t)
#define NOTHROW (size_t size, const void *nothrow), (size, nothrow), _Alignof(max_align_t)
#define ALIGNED (size_t size, size_t alignment), (size, alignment), alignment
#define ALIGNED_NOTHROW                                                                            \
    (size_t size, size_t alignment, const void *nothrow), (size, alignment, nothrow), alignment
#define NEW_OF(name, ...) NEW(name, __VA_ARGS__)

NEW_OF(_Znwm, PLAIN)
NEW_OF(_Znam, PLAIN)
NEW_OF(_ZnwmRKSt9nothrow_t, NOTHROW)
NEW_OF(_ZnamRKSt9nothrow_t, NOTHROW)
NEW_OF(_ZnwmSt11align_val_t, ALIGNED)
NEW_OF(_ZnamSt11align_val_t, ALIGNED)
NEW_OF(_ZnwmSt11align_val_tRKSt9nothrow_t, ALIGNED_NOTHROW)
NEW_OF(_ZnamSt11align_val_tRKSt9nothrow_t, ALIGNED_NOTHROW)

#define DELETE(name, parameters, arguments)                                                        \
    HOOK_EXPORTED void name parameters                                                             \
    {                                                                                              \
        if (!IS_KNOWN(name))                                                                       \
            free(block);                                                                           \
        else if (!UNLIKELY(blocks_may_have(block)) || account_free(block))                         \
            next.name arguments;                                                                   \
    }

DELETE(_ZdlPv, (void *block), (block))
DELETE(_ZdaPv, (void *block), (block))
DELETE(_ZdlPvm, (void *block, size_t size), (block, size))
DELETE(_ZdaPvm, (void *block, size_t size), (block, size))
DELETE(_ZdlPvRKSt9nothrow_t, (void *block, const void *nothrow), (block, nothrow))
DELETE(_ZdaPvRKSt9nothrow_t, (void *block, const void *nothrow), (block, nothrow))
DELETE(_ZdlPvSt11align_val_t, (void *block, size_t alignment), (block, alignment))
DELETE(_ZdaPvSt11align_val_t, (void *block, size_t alignment), (block, alignment))
DELETE(_ZdlPvmSt11align_val_t, (void *block, size_t size, size_t alignment),
       (block, size, alignment))
DELETE(_ZdaPvmSt11align_val_t, (void *block, size_t size, size_t alignment),
       (block, size, alignment))
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *block, size_t alignment, const void *nothrow),
       (block, alignment, nothrow))
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *block, size_t alignment, const void *nothrow),
       (block, alignment, nothrow))

/* ---- where there is none ---- */

static const struct {
    const char *name;
    void *const *next;
} operators[] = {
#define HOOK(type, name, parameters) { #name, (void *const *)(void *)&next.name },
#include "sampler/shim/operators.def"
#undef HOOK
};

enum { OPERATORS = sizeof operators / sizeof *operators };

static bool own_object(struct loaded_object *ret)
{
    Dl_info info;
    struct link_map *map = NULL;
    return dladdr1(&next, &info, (void **)&map, RTLD_DL_LINKMAP) && map &&
           loaded_object_read(map, ret);
}

/* The loader passes by a symbol without a value. The pages of the table hold nothing that runs. */
static void symbols_withdraw(ElfW(Sym) *const *symbols, size_t count)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = UINTPTR_MAX, end = 0;
    for (size_t i = 0; i < count; i++) {
        uintptr_t at = (uintptr_t)symbols[i];
        start = at < start ? at : start;
        end = at > end ? at : end;
    }
    start &= ~(page - 1);
    end += sizeof **symbols;
    if (!count || mprotect((void *)start, end - start, PROT_READ | PROT_WRITE))
        return;
    for (size_t i = 0; i < count; i++) {
        symbols[i]->st_shndx = SHN_UNDEF;
        symbols[i]->st_value = 0;
    }
    mprotect((void *)start, end - start, PROT_READ);
}

void operators_withdraw(bool all)
{
    struct loaded_object own;
    ElfW(Sym) * symbols[OPERATORS];
    size_t count = 0;
    if (!own_object(&own))
        return;
    for (size_t i = 0; i < OPERATORS; i++) {
        const ElfW(Sym) *symbol = loaded_object_define(&own, operators[i].name);
        if (symbol && (all || !*operators[i].next))
            symbols[count++] = (ElfW(Sym) *)symbol;
    }
    symbols_withdraw(symbols, count);
}
