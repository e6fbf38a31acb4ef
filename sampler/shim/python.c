#define _GNU_SOURCE 1 /* RTLD_DEFAULT */

#include "sampler/shim/python.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* "3.13.0 (main, …" or "3.13.0 experimental free-threading build (…" (CPython:
 * Python/getversion.c). Before a release its layout is not settled: "3.15.0rc1". */
static bool version_parse(const char *text, struct python *ret)
{
    uint8_t numbers[3] = { 0 };
    for (int i = 0; i < 3; i++) {
        if (*text < '0' || *text > '9')
            return false;
        for (; *text >= '0' && *text <= '9'; text++)
            numbers[i] = (uint8_t)(numbers[i] * 10 + (*text - '0'));
        if (i < 2 && *text++ != '.')
            return false;
    }
    ret->major = numbers[0];
    ret->minor = numbers[1];
    ret->free_threaded = strstr(text, "free-threading build") != NULL;
    return *text == ' ' || *text == '+';
}

static const struct ring_python *layout_find(const struct ring_head *head,
                                             const struct python *python)
{
    for (uint32_t i = 0; i < head->python_count && i < RING_PYTHONS; i++) {
        const struct ring_python *layout = &head->pythons[i];
        if (layout->major == python->major && layout->minor == python->minor &&
            layout->free_threaded == python->free_threaded)
            return layout;
    }
    return NULL;
}

/* dlsym gives a data pointer: what it points to is copied, not cast. */
static bool function_find(const char *name, void *ret)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    memcpy(ret, &found, sizeof found);
    return found;
}

bool python_find(const struct ring_head *head, struct python *ret)
{
    struct python python = { 0 };
    const char *(*version)(void);
    if (!function_find("Py_GetVersion", &version) ||
        !function_find("PyMem_GetAllocator", &python.allocator_get) ||
        !function_find("PyMem_SetAllocator", &python.allocator_set) ||
        !function_find("Py_IsInitialized", &python.is_initialized) ||
        !function_find("PyGILState_GetThisThreadState", &python.state_of_thread))
        return false;
    if (!function_find("Py_IsFinalizing", &python.is_finalizing))
        function_find("_Py_IsFinalizing", &python.is_finalizing);
    function_find("PyThreadState_GetUnchecked", &python.state_attached);
    if (version_parse(version(), &python))
        python.layout = layout_find(head, &python);
    *ret = python;
    return true;
}

/*
 * While the interpreter is finalized, it frees the states of threads that still run: then only the
 * main thread, which does it, has one. A thread that has let go of the GIL is attached to none, and
 * PyGILState still knows its state.
 */
const void *python_thread_state(const struct python *python)
{
    if (!python->layout || !python->is_initialized())
        return NULL;
    if (python->is_finalizing && python->is_finalizing() && syscall(SYS_gettid) != getpid())
        return NULL;
    const void *state = python->state_attached ? python->state_attached() : NULL;
    return state ? state : python->state_of_thread();
}
