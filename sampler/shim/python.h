/*
 * The CPython in this process, if there is one: its exported functions, where things stand in it,
 * and the calling thread's state. Calls nothing that allocates, takes the GIL or counts references.
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

enum { PYMEM_DOMAIN_RAW, PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ, PYMEM_DOMAINS };

struct python {
    void (*allocator_get)(int domain, struct allocator_functions *ret);
    void (*allocator_set)(int domain, struct allocator_functions *functions);
    int (*is_initialized)(void);
    int (*is_finalizing)(void);       /* or NULL */
    void *(*state_of_thread)(void);   /* what PyGILState knows of the thread */
    void *(*state_attached)(void);    /* the one that it runs in, from 3.13 on; or NULL */
    const struct ring_python *layout; /* NULL: none that was handed over fits */
    uint8_t major, minor, free_threaded;
};

/* False when there is none in the process, or none yet. `head` is the ring's. */
bool python_find(const struct ring_head *head, struct python *ret);

/* The calling thread's PyThreadState, or NULL: it has none, or it can no longer be trusted. */
const void *python_thread_state(const struct python *python);
