/*
 * The next function of each name behind ours: another library's that was preloaded or linked
 * (jemalloc, tcmalloc, mimalloc), or libc's.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct next_functions {
#define HOOK(type, name, parameters) type(*name) parameters;
#include "sampler/shim/hooks.def"
#undef HOOK
    size_t (*malloc_usable_size)(void *address);
};

extern struct next_functions next __attribute__((visibility("hidden")));

/* In copy_hooks.c: serves until the next one is known. */
void *memmove_early(void *to, const void *from, size_t size);

/* Before it is called, and while it runs, a small store of the shim's own serves. */
void hooks_resolve(void);

#define HOOK_EXPORTED __attribute__((visibility("default")))
