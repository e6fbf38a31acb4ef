#define _GNU_SOURCE 1 /* syscall */

#include "sampler/shim/python.h"

#include "sampler/shim/field.h"
#include "sampler/shim/loaded_object.h"
#include "sampler/shim/thread.h"

#include <pthread.h>
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

/* A symbol gives a data pointer: what it points to is copied, not cast. */
static bool symbol_find(const struct loaded_object *object, const char *name, void *ret)
{
    const ElfW(Sym) *symbol = loaded_object_define(object, name);
    void *found = symbol ? (void *)(object->base + symbol->st_value) : NULL;
    memcpy(ret, &found, sizeof found);
    return found;
}

static void symbols_find_more(const struct loaded_object *object, struct python *python)
{
    symbol_find(object, "PyObject_GetArenaAllocator", &python->arenas_get);
    symbol_find(object, "PyObject_SetArenaAllocator", &python->arenas_set);
    if (!symbol_find(object, "Py_IsFinalizing", &python->is_finalizing))
        symbol_find(object, "_Py_IsFinalizing", &python->is_finalizing);
    if (!symbol_find(object, "PyThreadState_GetUnchecked", &python->state_attached))
        symbol_find(object, "_PyThreadState_UncheckedGet", &python->state_current);
    symbol_find(object, "PyCode_Type", &python->code_type);
    symbol_find(object, "PyRun_SimpleString", &python->run_simple);
    symbol_find(object, "PySys_AddAuditHook", &python->audit_hook_add);
}

bool python_read(const struct loaded_object *object, const struct ring_head *head,
                 struct python *ret)
{
    struct python python = { 0 };
    const char *(*version)(void);
    if (!symbol_find(object, "Py_GetVersion", &version) ||
        !symbol_find(object, "PyMem_GetAllocator", &python.allocator_get) ||
        !symbol_find(object, "PyMem_SetAllocator", &python.allocator_set) ||
        !symbol_find(object, "Py_IsInitialized", &python.is_initialized) ||
        !symbol_find(object, "PyGILState_GetThisThreadState", &python.state_of_thread))
        return false;
    symbols_find_more(object, &python);
    loaded_object_range(object, &python.start, &python.end);
    if (version_parse(version(), &python))
        python.layout = layout_find(head, &python);
    *ret = python;
    return true;
}

struct python_search {
    const struct ring_head *head;
    struct python found;
    bool has_found;
};

/* Of several the first, or the one that runs. */
static bool object_look(const struct loaded_object *object, void *argument)
{
    struct python_search *search = argument;
    struct python python;
    if (!python_read(object, search->head, &python))
        return false;
    bool runs = python.is_initialized();
    if (runs || !search->has_found)
        search->found = python;
    search->has_found = true;
    return runs;
}

bool python_find(const struct ring_head *head, struct python *ret)
{
    struct python_search search = { .head = head };
    loaded_objects_walk(object_look, &search);
    if (search.has_found)
        *ret = search.found;
    return search.has_found;
}

bool python_holds(const struct python *python, const void *at)
{
    uintptr_t address;
    memcpy(&address, at, sizeof address);
    return address >= python->start && address < python->end;
}

/*
 * In a sub-interpreter a thread has another state than the one that PyGILState knows. Who has the
 * GIL runs in the current one, and nobody else may look at it, as its thread may end; where that
 * was not made by the thread that runs it, it is not known to be its own.
 */
static const void *state_with_gil(const struct python *python)
{
    const uint8_t *state = NULL;
    uint64_t maker = 0;
    if (shim_thread.has_gil && python->state_current && python->layout->thread_ident != RING_ABSENT)
        state = python->state_current();
    if (state)
        __builtin_memcpy(&maker, state + python->layout->thread_ident, sizeof maker);
    return maker == pthread_self() ? state : NULL;
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
    const void *state = python->state_attached ? python->state_attached() : state_with_gil(python);
    return state ? state : python->state_of_thread();
}
