#define _GNU_SOURCE 1 /* RTLD_DEFAULT */

#include "sampler/shim/profile_builtin.h"

#include "sampler/shim/early.h"

#include <dlfcn.h>
#include <string.h>

static const char give[] = "__import__('builtins').__dict__.setdefault("
                           "'profile', lambda function: function)";

typedef int audit_hook(const char *event, void *arguments, void *context);

static void *symbol_find(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

/* CPython asks its audit hooks when a file, a module, a command or standard input is about to be
 * run, in the thread that may run Python. */
static int event_hear(const char *event, void *arguments, void *context)
{
    static const char runs[] = "cpython.run_";
    int (*run)(const char *);
    (void)arguments;
    (void)context;
    if (strncmp(event, runs, sizeof runs - 1) == 0) {
        *(void **)&run = symbol_find("PyRun_SimpleString");
        if (run)
            run(give);
    }
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
    int (*add)(audit_hook *, void *);
    struct allocator_functions usual, store;
    *(void **)&add = symbol_find("PySys_AddAuditHook");
    if (!add || python->is_initialized())
        return;
    python->allocator_get(PYMEM_DOMAIN_RAW, &usual);
    store = usual;
    store.malloc = store_malloc;
    python->allocator_set(PYMEM_DOMAIN_RAW, &store);
    add(event_hear, NULL);
    python->allocator_set(PYMEM_DOMAIN_RAW, &usual);
}
