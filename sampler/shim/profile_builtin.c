#include "sampler/shim/profile_builtin.h"

#include "sampler/shim/early.h"
#include "sampler/shim/records.h"

#include <string.h>

static const char give[] = "__import__('builtins').__dict__.setdefault("
                           "'profile', lambda function: function)";

/* CPython asks its audit hooks when a file, a module, a command or standard input is about to be
 * run, in the thread that may run Python. */
static int event_hear(const char *event, void *arguments, void *context)
{
    static const char runs[] = "cpython.run_";
    (void)arguments;
    (void)context;
    if (strncmp(event, runs, sizeof runs - 1) == 0 && recorder.python.run_simple)
        recorder.python.run_simple(give);
    return 0;
}

static void *store_malloc(void *context, size_t size)
{
    (void)context;
    return early_allocate(size);
}

/*
 * The hook is kept in a block that is allocated now and freed at the end: by another allocator, if
 * PYTHONMALLOC or -X dev sets one meanwhile, and the debugging ones abort where a block is none of
 * theirs. So it comes from the store that every free of ours knows.
 */
void profile_builtin_add(const struct python *python)
{
    struct allocator_functions usual, store;
    if (!python->audit_hook_add || python->is_initialized())
        return;
    python->allocator_get(PYMEM_DOMAIN_RAW, &usual);
    store = usual;
    store.malloc = store_malloc;
    python->allocator_set(PYMEM_DOMAIN_RAW, &store);
    python->audit_hook_add(event_hear, NULL);
    python->allocator_set(PYMEM_DOMAIN_RAW, &usual);
}
