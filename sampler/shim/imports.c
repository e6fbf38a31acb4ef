#define _GNU_SOURCE 1 /* reallocarray, syscall */

#include "sampler/shim/imports.h"

#include "sampler/shim/hooks.h"
#include "sampler/shim/loaded_object.h"
#include "sampler/shim/space.h"

#include <errno.h>
#include <gnu/libc-version.h>
#include <linux/futex.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#if defined(__x86_64__)
enum { BY_CALL = R_X86_64_JUMP_SLOT, BY_ADDRESS = R_X86_64_GLOB_DAT, BY_WORD = R_X86_64_64 };
#elif defined(__aarch64__)
enum { BY_CALL = R_AARCH64_JUMP_SLOT, BY_ADDRESS = R_AARCH64_GLOB_DAT, BY_WORD = R_AARCH64_ABS64 };
#endif

enum { CHANGES = 1 << 15, PLACES = 2 * CHANGES };

struct hook {
    const char *name;
    void *ours;
    void *const *next;
};

static const struct hook hooks[] = {
#define HOOK(type, name, parameters) { #name, (void *)name, (void *const *)(void *)&next.name },
#include "sampler/shim/hooks.def"
#undef HOOK
};

enum { HOOKS = sizeof hooks / sizeof *hooks };

/* What stood in an import before: the function, or what finds it at the first call. */
struct change {
    void *_Atomic *import;
    void *before;
};

static struct change *changes; /* PLACES of them; neighbours in memory are neighbours here */
static size_t change_count, changes_lost;

/* ---- one import ---- */

/* Where it is, or would be. */
static struct change *change_place(void *_Atomic *import)
{
    size_t at = ((uintptr_t)import >> 3 ^ (uintptr_t)import >> 19) % PLACES;
    while (changes[at].import && changes[at].import != import)
        at = (at + 1) % PLACES;
    return &changes[at];
}

static void import_arm(const struct hook *hook, void *_Atomic *import)
{
    void *now = atomic_load_explicit(import, memory_order_relaxed);
    if (now == hook->ours)
        return;
    struct change *change = change_place(import);
    if (!change->import && change_count == CHANGES) {
        changes_lost++;
        return;
    }
    change_count += !change->import;
    *change = (struct change){ import, now };
    atomic_store_explicit(import, hook->ours, memory_order_release);
}

static void import_disarm(const struct hook *hook, void *_Atomic *import)
{
    if (atomic_load_explicit(import, memory_order_relaxed) != hook->ours)
        return;
    const struct change *change = change_place(import);
    atomic_store_explicit(import, change->import ? change->before : *hook->next,
                          memory_order_release);
}

/* ---- one object ---- */

typedef void import_visit(const struct hook *hook, void *_Atomic *import);

/*
 * Could one write there? Asked with an atomic "or 0" of the kernel's, which says so instead of
 * failing. An object that the loader is still working at is open yet, and must not be closed by us.
 */
static bool is_writable(uintptr_t address)
{
    static uint32_t nobody;
    return syscall(SYS_futex, &nobody, FUTEX_WAKE_OP_PRIVATE, 0L, 0L, address,
                   FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0)) >= 0;
}

static const struct hook *hook_find(const char *name)
{
    for (size_t i = 0; i < HOOKS; i++)
        if (hooks[i].name[0] == name[0] && strcmp(hooks[i].name, name) == 0)
            return &hooks[i];
    return NULL;
}

/* A word of data is the program's to change: only where the function still stands it is one. */
static bool word_is_function(uintptr_t at)
{
    void *now = *(void *const *)at;
    for (size_t i = 0; i < HOOKS; i++)
        if (now && (now == hooks[i].ours || now == *hooks[i].next))
            return true;
    return false;
}

/*
 * C++'s new and delete: many libraries have their own, which other libraries may see or not. Those
 * of one must stay with each other, so only what leads to the next ones is hooked, or what will,
 * being no more yet than a place of the object's own that asks the loader.
 */
static bool leads_to_next(const struct loaded_object *object, const struct hook *hook, void *now)
{
    static const char cpp[] = "_Z";
    if (strncmp(hook->name, cpp, sizeof cpp - 1) != 0 || now == hook->ours)
        return true;
    bool is_unbound = loaded_object_holds(object, now) && !loaded_object_define(object, hook->name);
    return *hook->next && (now == *hook->next || is_unbound);
}

static const struct hook *import_hook(const struct loaded_object *object, const ElfW(Rela) * entry)
{
    unsigned kind = ELF64_R_TYPE(entry->r_info);
    uintptr_t at = object->base + entry->r_offset;
    if ((kind != BY_CALL && kind != BY_ADDRESS && kind != BY_WORD) || at % sizeof(void *))
        return NULL;
    if (kind == BY_WORD && (entry->r_addend || !word_is_function(at)))
        return NULL;
    const struct hook *hook =
        hook_find(object->strings + object->symbols[ELF64_R_SYM(entry->r_info)].st_name);
    void *now = *(void *const *)at;
    bool is_its = hook && (kind != BY_WORD || now == hook->ours || now == *hook->next);
    return is_its && leads_to_next(object, hook, now) ? hook : NULL;
}

/* Tables are open or guarded; words of data may also be where nobody writes any more. */
static bool is_open(const struct loaded_object *object, const ElfW(Rela) * entry, bool *opened)
{
    uintptr_t at = object->base + entry->r_offset;
    size_t size = object->guarded_end - object->guarded;
    if (at < object->guarded || at >= object->guarded_end)
        return ELF64_R_TYPE(entry->r_info) != BY_WORD || is_writable(at);
    if (!*opened && !is_writable(at))
        *opened = mprotect((void *)object->guarded, size, PROT_READ | PROT_WRITE) == 0;
    return *opened || is_writable(at);
}

static void object_visit(const struct loaded_object *object, import_visit *visit)
{
    bool opened = false;
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < object->counts[i]; j++) {
            const ElfW(Rela) *entry = &object->lists[i][j];
            const struct hook *hook = import_hook(object, entry);
            if (hook && is_open(object, entry, &opened))
                visit(hook, (void *_Atomic *)(object->base + entry->r_offset));
        }
    if (opened)
        mprotect((void *)object->guarded, object->guarded_end - object->guarded, PROT_READ);
}

/* ---- all ---- */

static bool object_is_spared(const struct loaded_object *object)
{
    return object->base == getauxval(AT_BASE) || loaded_object_holds(object, &changes) ||
           loaded_object_holds(object, (const void *)gnu_get_libc_version) ||
           loaded_object_holds(object, (const void *)next.malloc);
}

static bool object_pass(const struct loaded_object *object, void *visit)
{
    if (!object_is_spared(object))
        object_visit(object, *(import_visit **)visit);
    return false;
}

int imports_arm(void)
{
    import_visit *visit = import_arm;
    if (!changes)
        changes = space_reserve(PLACES * sizeof *changes);
    if (!changes)
        return -ENOMEM;
    changes_lost = 0;
    int error = loaded_objects_walk(object_pass, &visit);
    return error ? error : changes_lost ? -ENOSPC : 0;
}

int imports_disarm(void)
{
    import_visit *visit = import_disarm;
    int error = changes ? loaded_objects_walk(object_pass, &visit) : 0;
    if (error || !changes)
        return error;
    space_empty(changes, PLACES * sizeof *changes);
    change_count = 0;
    return 0;
}
