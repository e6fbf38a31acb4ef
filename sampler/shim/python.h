/*
 * The CPython in this process, if there is one: its exported functions, where things stand in it,
 * and the calling thread's state. Calls nothing that allocates, takes the GIL, counts references or
 * asks the loader.
 */
#pragma once

#include "sampler/shim/ring_layout.h"

#include <stdbool.h>
#include <stddef.h>

/* PyMemAllocatorEx (CPython: Include/cpython/pymem.h) */
struct allocator_functions {
    void *context;
    void *(*malloc)(void *context, size_t size);
    void *(*calloc)(void *context, size_t count, size_t size);
    void *(*realloc)(void *context, void *old, size_t size);
    void (*free)(void *context, void *address);
};

/* PyObjectArenaAllocator (same file) */
struct arena_functions {
    void *context;
    void *(*allocate)(void *context, size_t size);
    void (*free)(void *context, void *address, size_t size);
};

enum { PYMEM_DOMAIN_RAW, PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ, PYMEM_DOMAINS };

struct python {
    void (*allocator_get)(int domain, struct allocator_functions *ret);
    void (*allocator_set)(int domain, struct allocator_functions *functions);
    void (*arenas_get)(struct arena_functions *ret);       /* or NULL */
    void (*arenas_set)(struct arena_functions *functions); /* or NULL */
    int (*is_initialized)(void);
    int (*is_finalizing)(void);          /* or NULL */
    void *(*state_of_thread)(void);      /* what PyGILState knows of the thread */
    void *(*state_attached)(void);       /* the one that it runs in, from 3.13 on; or NULL */
    void *(*state_current)(void);        /* the GIL's, before that; or NULL */
    const struct ring_python *layout;    /* NULL: none that was handed over fits */
    const void *code_type;               /* PyCode_Type */
    int (*run_simple)(const char *text); /* or NULL; and the next one */
    int (*audit_hook_add)(int (*hook)(const char *event, void *arguments, void *context),
                          void *context);
    uintptr_t start, end; /* of the object that all of them lie in */
    uint8_t major, minor, free_threaded;
};

/* False when there is none in the process, or none yet. `head` is the ring's. No other thread is in
 * the loader. */
bool python_find(const struct ring_head *head, struct python *ret);

/* False when this object is none. */
struct loaded_object;
bool python_read(const struct loaded_object *object, const struct ring_head *head,
                 struct python *ret);

/* Is what lies at `*at` an address in Python itself? */
bool python_holds(const struct python *python, const void *at);

/* The calling thread's PyThreadState, or NULL: it has none, or it can no longer be trusted. */
const void *python_thread_state(const struct python *python);
