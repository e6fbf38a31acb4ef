/*
 * sys.modules["threading"]._active is a dict from identities to Thread objects, whose attribute
 * `_name` is a str (Lib/threading.py of CPython 3.8 to 3.15). Reads only; the target's threads may
 * be running.
 */
#include "pyabi/thread_names.h"

#include "pyabi/dicts.h"
#include "pyabi/strings.h"
#include "sampler/base/cleanup.h"

struct name_walk {
    struct remote *memory;
    const struct py_layout *layout;
    int (*name)(void *context, uint64_t ident, const char *name);
    void *context;
    struct attribute_memo memo;
};

static bool error_is_final(int error)
{
    return error == -ESRCH || error == -EPERM || error == -ENOMEM;
}

static int thread_visit(void *context, remote_addr key, remote_addr thread)
{
    struct name_walk *walk = context;
    int64_t ident;
    remote_addr object;
    AUTO_FREE char *name = NULL;
    int error = integer_read(walk->memory, walk->layout, key, &ident);
    if (!error)
        error =
            instance_find_next(walk->memory, walk->layout, thread, "_name", &walk->memo, &object);
    if (!error)
        error = string_read(walk->memory, walk->layout, object, &name);
    if (error)
        return error_is_final(error) ? error : 0;
    return walk->name(walk->context, (uint64_t)ident, name);
}

int thread_names_walk(struct remote *memory, const struct py_layout *layout,
                      remote_addr interpreter,
                      int (*name)(void *context, uint64_t ident, const char *name), void *context)
{
    struct name_walk walk = { memory, layout, name, context, { 0 } };
    remote_addr modules, threading, dict, active;
    int error = remote_read(memory, interpreter + offset_of(layout->interp.modules), &modules,
                            sizeof(modules));
    if (!error && !modules)
        error = -ENOENT;
    if (!error)
        error = dict_find(memory, layout, modules, "threading", &threading);
    if (!error)
        error =
            remote_read(memory, threading + offset_of(layout->module.dict), &dict, sizeof(dict));
    if (!error)
        error = dict_find(memory, layout, dict, "_active", &active);
    return error ? error : dict_walk(memory, layout, active, thread_visit, &walk);
}
