/*
 * pthread_key_create, which CPython calls when it begins: that is how a program's own late loading
 * of it is noticed. Passed on as it is.
 */
#define _GNU_SOURCE 1 /* RTLD_NEXT */

#include "sampler/shim/hooks.h"
#include "sampler/shim/python_hooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

typedef int key_create(pthread_key_t *ret, void (*end)(void *));

/* Until glibc 2.34 it was in a library of its own, which a program may load late and for itself. */
static key_create *next_find(void)
{
    void *library, *found = dlsym(RTLD_NEXT, "pthread_key_create");
    key_create *function;
    if (!found && (library = dlopen("libpthread.so.0", RTLD_LAZY | RTLD_NOLOAD)))
        found = dlsym(library, "pthread_key_create");
    memcpy(&function, &found, sizeof function);
    return function;
}

HOOK_EXPORTED int pthread_key_create(pthread_key_t *ret, void (*end)(void *))
{
    static key_create *_Atomic next_one;
    if (!next_one)
        next_one = next_find();
    python_hooks_key_made(__builtin_return_address(0));
    return next_one ? next_one(ret, end) : EAGAIN;
}
