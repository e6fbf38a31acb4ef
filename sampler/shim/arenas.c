#include "sampler/shim/arenas.h"

#include "sampler/shim/records.h"
#include "sampler/shim/thread.h"

/* Smaller regions are no arenas: from 3.11 on those are pieces of a thread's evaluation stack, of
 * which nobody else tells (CPython: Objects/obmalloc.c, Python/pystate.c). */
enum { ARENA_LEAST = 256 << 10 };

static struct arena_functions below;

static void *arena_allocate(void *context, size_t size)
{
    bool inside = shim_thread.inside;
    shim_thread.inside |= size >= ARENA_LEAST;
    void *arena = below.allocate(context, size);
    shim_thread.inside = inside;
    return arena;
}

/* The context stays, as threads may be asking while it is set: each mixture of the two is right. */
bool arenas_guard(void)
{
    struct arena_functions functions;
    if (!recorder.python.arenas_get || !recorder.python.arenas_set)
        return false;
    recorder.python.arenas_get(&functions);
    if (functions.allocate == arena_allocate)
        return true;
    below = functions;
    functions.allocate = arena_allocate;
    recorder.python.arenas_set(&functions);
    return true;
}

void arenas_leave(void)
{
    struct arena_functions functions;
    if (!below.allocate)
        return;
    recorder.python.arenas_get(&functions);
    if (functions.allocate == arena_allocate)
        recorder.python.arenas_set(&below);
}
