/*
 * `@profile` without an import, as Scalene's users write it: once an interpreter is about to run
 * its program, its builtins get a `profile` that returns what it is given, unless they have one.
 * CPython asks its audit hooks at that moment, in the thread that may run Python.
 */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <dlfcn.h>
#include <string.h>

static const char give[] = "__import__('builtins').__dict__.setdefault("
                           "'profile', lambda function: function)";

typedef int audit_hook(const char *event, void *arguments, void *context);

static void *symbol_find(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

static int event_hear(const char *event, void *arguments, void *context)
{
    static const char runs[] = "cpython.run_"; /* a file, a module, a command, standard input */
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

/* May be called before an interpreter begins, and is asked by all that do. */
__attribute__((constructor)) static void hook_add(void)
{
    int (*add)(audit_hook *, void *);
    *(void **)&add = symbol_find("PySys_AddAuditHook");
    if (add)
        add(event_hear, NULL);
}
