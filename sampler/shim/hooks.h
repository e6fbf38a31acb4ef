/*
 * The next function of each name behind ours: another library's that was preloaded or linked
 * (jemalloc, tcmalloc, mimalloc), or libc's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct next_functions {
#define HOOK(type, name, parameters) type(*name) parameters;
#include "sampler/shim/hooks.def"
#undef HOOK
    size_t (*malloc_usable_size)(void *address);
};

/* Ours: headers do not declare those that compilers call where they know how much room there is. */
#define HOOK(type, name, parameters) type name parameters;
#include "sampler/shim/hooks.def"
#undef HOOK

extern struct next_functions next __attribute__((visibility("hidden")));

/* The program has an allocator of its own linked in, which nobody can stand in front of: what comes
 * by of malloc's family is passed on untouched, and none of it is counted. */
extern bool hooks_pass_by __attribute__((visibility("hidden")));

/* In copy_hooks.c: serves until the next one is known. */
void *memmove_early(void *to, const void *from, size_t size);

/* Before it is called, and while it runs, a small store of the shim's own serves. */
void hooks_resolve(void);

/* The same for a shim that came later than all others: those that everybody calls. For the
 * constructor, as it asks the loader. */
void hooks_resolve_attached(void);

/* In operator_hooks.c: from here on nobody finds ours by name, where there is no next one or in any
 * case. Asks the loader. */
void operators_withdraw(bool all);

#define HOOK_EXPORTED __attribute__((visibility("default")))
