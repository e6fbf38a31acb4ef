/*
 * Opening a runtime: which CPython is it, does what stands there make sense, which layout holds.
 * Newer releases tell their own offsets behind a cookie; older ones are recognised by an
 * interpreter list that hangs together and by their own sys.hexversion.
 */
#include "pyabi/dicts.h"
#include "pyabi/field.h"
#include "pyabi/python.h"
#include "sampler/base/cleanup.h"

#include <stdio.h>
#include <string.h>

enum { DEBUG_TABLE_MAX = 4096, FIRST_THREADS = 64 };

/* The head of _Py_DebugOffsets, the same in all releases that have one: cookie, version,
 * free_threaded. */
struct debug_head {
    char cookie[8];
    uint64_t version;
    uint64_t free_threaded;
};

static const char COOKIE[8] = { 'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y' };

static const struct py_layout *release_of(uint32_t version, bool free_threaded)
{
    return layout_find(version >> 24, version >> 16 & 0xff, free_threaded);
}

static int debug_head_read(struct remote *memory, remote_addr runtime, struct debug_head *ret)
{
    int error = remote_read(memory, runtime, ret, sizeof *ret);
    if (error)
        return error;
    return memcmp(ret->cookie, COOKIE, sizeof COOKIE) == 0 ? 0 : -ENOENT;
}

/*
 * The list of interpreters ends with the main one. A runtime keeps the current thread and its
 * interpreter side by side, too, which looks like the list's two ends.
 */
static bool list_leads_to(struct remote *memory, const struct py_layout *layout,
                          remote_addr runtime, remote_addr main_interpreter)
{
    remote_addr at = 0, next = 0;
    if (remote_read(memory, runtime + offset_of(layout->runtime.interpreters_head), &at, 8))
        return false;
    for (size_t i = 0; i < INTERPRETER_MAX && at != main_interpreter; i++, at = next)
        if (!object_plausible(at) ||
            remote_read(memory, at + offset_of(layout->interp.next), &next, 8))
            return false;
    return at == main_interpreter;
}

/* The newest thread may end between two reads: then another is the first when it is looked for
 * again, and that one's turn comes. */
static bool thread_points_back(struct remote *memory, const struct py_layout *layout,
                               remote_addr interpreter)
{
    remote_addr head = interpreter + offset_of(layout->interp.threads_head);
    remote_addr before = 0, thread = 0, back = 0;
    for (int i = 0; i < FIRST_THREADS; i++) {
        before = thread;
        if (remote_read(memory, head, &thread, 8) || !object_plausible(thread))
            return false;
        if (!remote_read(memory, thread + offset_of(layout->thread.interp), &back, 8) &&
            back == interpreter)
            return true;
        if (thread == before)
            return false;
    }
    return false;
}

/* The first interpreter's first thread points back at it, and the interpreter's id is plausible. */
static int list_check(struct remote *memory, const struct py_layout *layout, remote_addr runtime,
                      remote_addr *ret_interpreter)
{
    remote_addr interpreter = 0;
    int64_t id = -1;
    int error = remote_read(memory, runtime + offset_of(layout->runtime.interpreters_main),
                            &interpreter, 8);
    if (error)
        return error;
    if (!object_plausible(interpreter))
        return -EBADMSG;
    if (!thread_points_back(memory, layout, interpreter) ||
        remote_read(memory, interpreter + offset_of(layout->interp.id), &id, 8) || id != 0)
        return -EBADMSG;
    *ret_interpreter = interpreter;
    return list_leads_to(memory, layout, runtime, interpreter) ? 0 : -EBADMSG;
}

/* sys.hexversion, read with a release's own layout: right only when the layout is. */
static int hexversion_read(struct remote *memory, const struct py_layout *layout,
                           remote_addr interpreter, uint32_t *ret)
{
    remote_addr dict = 0, object = 0;
    int64_t value = 0;
    if (remote_read(memory, interpreter + offset_of(layout->interp.sysdict), &dict, 8) ||
        dict_find(memory, layout, dict, "hexversion", &object) ||
        integer_read(memory, layout, object, &value))
        return -EBADMSG;
    *ret = (uint32_t)value;
    return 0;
}

static bool version_lacks_micro(uint32_t version)
{
    return (version >> 8 & 0xff) == VERSION_MICRO_UNTOLD;
}

static bool version_is_of(uint32_t version, const struct py_layout *layout)
{
    return version >> 24 == layout->major && (version >> 16 & 0xff) == layout->minor;
}

/* sys is whole before the first frame runs. */
static bool runs_frames(struct remote *memory, const struct py_layout *layout,
                        remote_addr interpreter)
{
    remote_addr thread = 0, frame = 0;
    remote_read(memory, interpreter + offset_of(layout->interp.threads_head), &thread, 8);
    for (int i = 0; i < FIRST_THREADS && object_plausible(thread) && !frame; i++)
        if (remote_read(memory, thread + offset_of(layout->thread.frame), &frame, 8) ||
            remote_read(memory, thread + offset_of(layout->thread.next), &thread, 8))
            return false;
    return frame;
}

/* The layout that reads its own version in the target is the right one. A program may change
 * sys.hexversion, and an interpreter that ends empties sys before it runs the last finalizers: then
 * a version that is whole is believed, but not one without its third number as long as an
 * interpreter that begins will tell that. */
static bool version_tell(struct remote *memory, const struct py_layout *layout,
                         remote_addr interpreter, uint32_t hint, uint32_t *ret)
{
    uint32_t version = 0;
    bool told =
        !hexversion_read(memory, layout, interpreter, &version) && version_is_of(version, layout);
    if (!told && (!version_is_whole(hint) ||
                  (version_lacks_micro(hint) && !runs_frames(memory, layout, interpreter))))
        return false;
    *ret = told ? version : hint;
    return true;
}

/* Older releases carry no cookie. */
static int release_recognise(struct remote *memory, remote_addr runtime, uint32_t hint,
                             uint32_t *ret_version)
{
    for (size_t i = 0; py_layouts[i]; i++) {
        const struct py_layout *layout = py_layouts[i];
        remote_addr interpreter = 0;
        if (layout->debug_offsets_size || (hint && !version_is_of(hint, layout)))
            continue;
        int error = list_check(memory, layout, runtime, &interpreter);
        if (error == -ESRCH || error == -EPERM)
            return error;
        if (!error && version_tell(memory, layout, interpreter, hint, ret_version))
            return version_is_final(*ret_version) ? 0 : -ENOTSUP;
    }
    return -EBADMSG;
}

int python_probe(struct remote *memory, remote_addr runtime, uint32_t version_hint,
                 uint32_t *ret_version)
{
    struct debug_head head;
    int error = debug_head_read(memory, runtime, &head);
    if (error && error != -ENOENT)
        return error;
    if (!error) {
        *ret_version = (uint32_t)head.version;
        if (head.version >> 32 || head.version >> 24 < 3 || head.free_threaded > 1)
            return -EBADMSG;
        const struct py_layout *layout = release_of(*ret_version, head.free_threaded);
        if (!layout || !version_is_final(*ret_version))
            return -ENOTSUP;
        remote_addr main_interpreter = 0;
        return list_check(memory, layout, runtime, &main_interpreter);
    }
    if (version_hint && !release_of(version_hint, false)) {
        *ret_version = version_hint;
        return -ENOTSUP;
    }
    return release_recognise(memory, runtime, version_hint, ret_version);
}

const uint32_t *python_head_offsets(void)
{
    static uint32_t offsets[32]; /* filled once from const data: the same whoever fills it */
    size_t count = 0;
    for (size_t i = 0; py_layouts[i] && count + 1 < sizeof offsets / sizeof *offsets; i++)
        if (!py_layouts[i]->debug_offsets_size)
            offsets[count++] = offset_of(py_layouts[i]->runtime.interpreters_head);
    return offsets;
}

/* ---- opening ---- */

static void version_write(uint32_t version, bool free_threaded, char *into)
{
    int used = snprintf(into, VERSION_TEXT, "%u.%u", version >> 24, version >> 16 & 0xff);
    if (!version_lacks_micro(version))
        used += snprintf(into + used, (size_t)(VERSION_TEXT - used), ".%u", version >> 8 & 0xff);
    if (free_threaded)
        snprintf(into + used, (size_t)(VERSION_TEXT - used), "t");
}

static int layout_choose(struct python *python, uint32_t version, struct failure *why)
{
    struct debug_head head = { .free_threaded = 0 };
    AUTO_FREE uint8_t *table = NULL;
    size_t table_size = 0;
    bool tells = debug_head_read(python->memory, python->runtime, &head) == 0;
    const struct py_layout *release = release_of(version, tells && head.free_threaded);
    if (!release)
        return failure_set(why, -ENOTSUP, "CPython %u.%u is not known", version >> 24,
                           version >> 16 & 0xff);
    if (tells) {
        table_size = release->debug_offsets_size;
        table = malloc(DEBUG_TABLE_MAX);
        if (!table || table_size > DEBUG_TABLE_MAX)
            return failure_set(why, -ENOMEM, "out of memory");
        int error = remote_read(python->memory, python->runtime, table, table_size);
        if (error)
            return failure_set(why, error, "the runtime's own offsets cannot be read");
    }
    version_write(version, release->free_threaded, python->version_text);
    return layout_resolve(release, table, table_size, &python->layout, why);
}

int python_open(struct remote *memory, remote_addr runtime, uint32_t version_hint,
                struct python **ret, struct failure *why)
{
    uint32_t version = 0;
    int error = python_probe(memory, runtime, version_hint, &version);
    if (error)
        return failure_set(why, error, "no CPython runtime that makes sense stands at 0x%llx",
                           (unsigned long long)runtime);
    struct python *python = calloc(1, sizeof *python);
    if (!python)
        return failure_set(why, -ENOMEM, "out of memory");
    python->memory = memory;
    python->runtime = runtime;
    error = layout_choose(python, version, why);
    if (!error && (page_cache_new(memory, &python->pages) || intern_new(&python->texts) ||
                   intern_new(&python->names) ||
                   code_cache_new(&python->layout, python->texts, &python->codes)))
        error = failure_set(why, -ENOMEM, "out of memory");
    if (error) {
        python_close(python);
        return error;
    }
    *ret = python;
    return 0;
}

void python_close(struct python *python)
{
    if (!python)
        return;
    code_cache_free(python->codes);
    intern_free(python->texts);
    intern_free(python->names);
    page_cache_free(python->pages);
    free(python->threads);
    free(python->walked);
    free(python->frames);
    free(python);
}

const char *python_version_text(const struct python *python)
{
    return python->version_text;
}

void python_want(struct python *python, unsigned wants)
{
    python->wants = wants;
}
