/*
 * Goes from cheap and sure to dear and doubtful: names in the executable and in objects called
 * after Python, names in every other object, the cookie, and at last the shape of an interpreter
 * list. What is found is only ever a candidate; the judge decides. The target's threads are
 * running, and nothing of the target's is executed.
 */
#include "symbols/find_python.h"

#include "sampler/base/cleanup.h"
#include "symbols/elf_file.h"
#include "symbols/mapped_objects.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* what searching memory may cost in a process that turns out to be no Python */
    WINDOW_WORDS = 3,
    CHUNK_SIZE = 128 * 1024,
    MAX_SPAN = 32 << 20,
    MAX_STAGE = 128 << 20,
    MAX_PROBES = 20000,
    SOME_FINAL = 0xfff0, /* makes a whole version of two numbers (Include/patchlevel.h) */
};

/* What a candidate that was turned down tells about the process. */
struct clue {
    bool seen;
    uint32_t version;
    const char *path;
};

struct search {
    struct remote *memory;
    int proc_fd;
    const struct python_judge *judge;
    struct maps maps;
    struct mapped_object *objects;
    size_t object_count;
    char executable[PATH_MAX];
    uint64_t *chunk;   /* CHUNK_SIZE */
    size_t bytes_left; /* of this stage */
    size_t probes_left;
    size_t unopened;
    struct clue unknown;    /* a CPython without a layout */
    struct clue not_inited; /* a runtime by its name, but none by its contents */
    struct python_location found;
};

/* Every step answers 1: found, 0: go on, or why the search must end. */

static void search_done(struct search *search)
{
    maps_done(&search->maps);
    free(search->objects);
    free(search->chunk);
}

static bool may_use(const struct search *search, enum python_found_by by)
{
    return !search->judge->methods || search->judge->methods & 1u << by;
}

static int candidate_take(struct search *search, remote_addr runtime, uint32_t version,
                          enum python_found_by by, const char *path)
{
    struct python_location *found = &search->found;
    found->runtime = runtime;
    found->version_hex = version;
    found->by = by;
    snprintf(found->object_path, sizeof found->object_path, "%s", path);
    return 1;
}

static int candidate_try(struct search *search, remote_addr runtime, uint32_t hint,
                         enum python_found_by by, const char *path)
{
    uint32_t version = hint;
    const struct python_judge *judge = search->judge;
    int error = judge->probe(judge->context, runtime, hint, &version);
    if (error == 0)
        return candidate_take(search, runtime, version, by, path);
    if (error == -ESRCH || error == -EPERM)
        return error;
    struct clue *clue = error == -ENOTSUP ? &search->unknown : &search->not_inited;
    if (!clue->seen && by != FOUND_BY_SCAN && (error == -ENOTSUP || by != FOUND_BY_COOKIE))
        *clue = (struct clue){ true, version, path };
    return 0;
}

/* ---- by name ---- */

/* A file name may lie, so a candidate turned down on its word is tried once more without it; where
 * the target itself tells nothing any more, as at its end, it is believed. */
static int named_try(struct search *search, remote_addr runtime, remote_addr version_at,
                     enum python_found_by by, const char *path)
{
    uint32_t version = 0;
    if (version_at && remote_read(search->memory, version_at, &version, sizeof version) == 0)
        return candidate_try(search, runtime, version, by, path);
    version = version_of_object(path, &search->maps);
    int result = candidate_try(search, runtime, version, by, path);
    if (!result && version)
        result = candidate_try(search, runtime, 0, by, path);
    if (!result && version && !search->unknown.seen)
        result = candidate_try(search, runtime, version | SOME_FINAL, by, path);
    return result;
}

typedef int symbol_finder(const struct elf_file *file, const char *name, uint64_t *ret_value,
                          uint64_t *ret_size);

/* Py_Version (3.11+) is looked for where _PyRuntime was, so that .symtab is read only if it must
 * be. */
static int symbol_try(struct search *search, const struct elf_file *file, remote_addr bias,
                      const char *path)
{
    uint64_t runtime, version, size;
    symbol_finder *find = elf_file_find_exported;
    if (find(file, "_PyRuntime", &runtime, &size) < 0) {
        find = elf_file_find_symbol;
        if (find(file, "_PyRuntime", &runtime, &size) < 0)
            return 0;
    }
    bool tells = find(file, "Py_Version", &version, &size) == 0;
    return named_try(search, bias + runtime, tells ? bias + version : 0, FOUND_BY_SYMBOL, path);
}

static int section_try(struct search *search, const struct elf_file *file, remote_addr bias,
                       const char *path)
{
    uint64_t runtime, version, size;
    if (elf_file_find_section(file, ".PyRuntime", &runtime, &size) < 0)
        return 0;
    bool tells = elf_file_find_exported(file, "Py_Version", &version, &size) == 0;
    return named_try(search, bias + runtime, tells ? bias + version : 0, FOUND_BY_SECTION, path);
}

/* 2.x and 3.0-3.6 had no _PyRuntime, but what every CPython exports. */
static void old_python_note(struct search *search, const struct elf_file *file, const char *path)
{
    uint64_t value, size;
    if (!search->unknown.seen && elf_file_find_symbol(file, "_PyRuntime", &value, &size) < 0 &&
        elf_file_find_symbol(file, "Py_GetVersion", &value, &size) == 0)
        search->unknown = (struct clue){ true, version_of_path(path), path };
}

static int object_bias(const struct elf_file *file, const struct mapped_object *object,
                       remote_addr *ret_bias)
{
    int error = -ENOENT;
    for (size_t i = 0; i < object->count && error; i++)
        if (object->mappings[i].inode)
            error = elf_file_bias(file, &object->mappings[i], ret_bias);
    return error;
}

DEFINE_CLEANUP(struct elf_file *, elf_file_close)

static int object_try(struct search *search, const struct mapped_object *object)
{
    CLEANUP(elf_file_closep) struct elf_file *file = NULL;
    const char *path = object->mappings->path;
    remote_addr bias;
    int error = elf_file_open_mapping(search->proc_fd, object->mappings, &file);
    if (error == -EPERM || error == -ENOENT)
        search->unopened++;
    if (error || object_bias(file, object, &bias) < 0)
        return 0;
    int result = 0;
    if (may_use(search, FOUND_BY_SYMBOL))
        result = symbol_try(search, file, bias, path);
    if (!result && may_use(search, FOUND_BY_SECTION))
        result = section_try(search, file, bias, path);
    if (!result && object->rank != OBJECT_OTHER)
        old_python_note(search, file, path);
    return result;
}

static int names_try(struct search *search)
{
    int result = 0;
    if (!may_use(search, FOUND_BY_SYMBOL) && !may_use(search, FOUND_BY_SECTION))
        return 0;
    for (size_t i = 0; i < search->object_count && !result; i++)
        result = object_try(search, &search->objects[i]);
    return result;
}

/* ---- by contents ---- */

typedef int window_try(struct search *search, remote_addr address, const uint64_t *words,
                       const char *path);

/* 3.13+: _PyRuntime begins with a cookie and PY_VERSION_HEX
 * (Include/internal/pycore_debug_offsets.h). */
static int cookie_try(struct search *search, remote_addr address, const uint64_t *words,
                      const char *path)
{
    if (memcmp(words, "xdebugpy", 8) != 0)
        return 0;
    return candidate_try(search, address, (uint32_t)words[1], FOUND_BY_COOKIE, path);
}

static bool writable_at(const struct search *search, remote_addr address)
{
    const struct mapping *mapping = maps_find(&search->maps, address);
    return mapping && mapping->writable;
}

/*
 * In every release so far the runtime's list of interpreters reads: head, main, next_id
 * (pycore_runtime.h and pycore_runtime_structs.h); the last is a small count, which rules out
 * nearly all that is no such list.
 */
static bool interpreter_list_like(const struct search *search, const uint64_t *words)
{
    return words[2] > 0 && words[2] < 1 << 20 && words[0] && words[1] &&
           (words[0] | words[1]) % 8 == 0 && writable_at(search, words[0]) &&
           writable_at(search, words[1]);
}

static int list_try(struct search *search, remote_addr address, const uint64_t *words,
                    const char *path)
{
    if (!interpreter_list_like(search, words))
        return 0;
    int result = 0;
    uint32_t hint = version_of_maps(&search->maps);
    const uint32_t *offset = search->judge->head_offsets;
    for (; *offset && !result && search->probes_left; offset++) {
        remote_addr runtime = address - *offset;
        if (!writable_at(search, runtime))
            continue;
        search->probes_left--;
        result = candidate_try(search, runtime, hint, FOUND_BY_SCAN, path);
        if (!result && hint)
            result = candidate_try(search, runtime, 0, FOUND_BY_SCAN, path);
    }
    return result;
}

/* The newest interpreter is the main one unless there are sub-interpreters. */
static int single_list_try(struct search *search, remote_addr address, const uint64_t *words,
                           const char *path)
{
    return words[0] == words[1] ? list_try(search, address, words, path) : 0;
}

static int several_list_try(struct search *search, remote_addr address, const uint64_t *words,
                            const char *path)
{
    return words[0] != words[1] ? list_try(search, address, words, path) : 0;
}

/* Slides a window over [start, end); chunks overlap, so that no window is cut in two. */
static int span_search(struct search *search, remote_addr start, remote_addr end,
                       window_try *window, const char *path)
{
    int result = 0;
    if (end - start > MAX_SPAN)
        end = start + MAX_SPAN;
    while (!result && end - start >= WINDOW_WORDS * 8) {
        size_t wanted = end - start < CHUNK_SIZE ? end - start : CHUNK_SIZE;
        if (wanted > search->bytes_left)
            break;
        long got = remote_read_some(search->memory, start, search->chunk, wanted);
        if (got < WINDOW_WORDS * 8)
            return got < 0 ? (int)got : 0;
        search->bytes_left -= wanted;
        size_t windows = (size_t)got / 8 - (WINDOW_WORDS - 1);
        for (size_t i = 0; i < windows && !result; i++)
            result = window(search, start + i * 8, search->chunk + i, path);
        if ((size_t)got < wanted)
            break;
        start += windows * 8;
    }
    return result;
}

/* .data and .bss are neighbours in memory: what can be written to is searched in one piece. */
static int object_search(struct search *search, const struct mapped_object *object,
                         window_try *window)
{
    int result = 0;
    const struct mapping *at = object->mappings, *end = at + object->count;
    while (at < end && !result) {
        const struct mapping *first = at++;
        if (!first->writable || !first->readable)
            continue;
        while (at < end && at->writable && at->readable && at->start == at[-1].end)
            at++;
        result = span_search(search, first->start, at[-1].end, window, object->mappings->path);
    }
    return result;
}

static int objects_search(struct search *search, enum python_found_by by, window_try *window)
{
    int result = 0;
    search->bytes_left = may_use(search, by) ? MAX_STAGE : 0;
    for (size_t i = 0; i < search->object_count && search->bytes_left && !result; i++)
        result = object_search(search, &search->objects[i], window);
    return result;
}

/* Some hosts move their data to huge pages or load themselves, which leaves no file behind the
 * mapping. */
static int anonymous_search(struct search *search)
{
    int result = 0;
    search->bytes_left = may_use(search, FOUND_BY_COOKIE) ? MAX_STAGE : 0;
    for (size_t i = 0; i < search->maps.count && search->bytes_left && !result; i++) {
        const struct mapping *mapping = &search->maps.list[i];
        if (mapping->inode == 0 && *mapping->path == '\0' && mapping->readable &&
            mapping->writable && mapping->end - mapping->start <= MAX_SPAN)
            result = span_search(search, mapping->start, mapping->end, cookie_try, mapping->path);
    }
    return result;
}

static int contents_try(struct search *search)
{
    search->chunk = malloc(CHUNK_SIZE);
    if (!search->chunk)
        return -ENOMEM;
    search->probes_left = MAX_PROBES;
    int result = objects_search(search, FOUND_BY_COOKIE, cookie_try);
    if (!result)
        result = anonymous_search(search);
    if (!result)
        result = objects_search(search, FOUND_BY_SCAN, single_list_try);
    if (!result)
        result = objects_search(search, FOUND_BY_SCAN, several_list_try);
    return result;
}

/* ---- what to say when there is none ---- */

static void version_write(uint32_t hex, char *into, size_t size)
{
    static const char *const levels[16] = { [0xa] = "a", [0xb] = "b", [0xc] = "rc" };
    unsigned major = hex >> 24, minor = hex >> 16 & 0xff, micro = hex >> 8 & 0xff;
    const char *level = levels[hex >> 4 & 0xf];
    if (!hex)
        snprintf(into, size, "of a release that nothing tells");
    else if (!(hex & 0xffff))
        snprintf(into, size, "%u.%u", major, minor);
    else if (!level)
        snprintf(into, size, "%u.%u.%u", major, minor, micro);
    else
        snprintf(into, size, "%u.%u.%u%s%u, a pre-release", major, minor, micro, level, hex & 0xf);
}

static int explain_unknown(const struct search *search, struct failure *why)
{
    char version[64];
    version_write(search->unknown.version, version, sizeof version);
    return failure_set(why, -ENOTSUP,
                       "it runs a CPython %s (in %s), whose memory layout is not known here",
                       version, *search->unknown.path ? search->unknown.path : search->executable);
}

static int explain_not_inited(const struct search *search, struct failure *why)
{
    return failure_set(
        why, -EAGAIN,
        "%s holds a CPython runtime, but no interpreter lives in it: either it is just "
        "starting or ending, which another try in a moment will tell, or this program (%s) never "
        "uses it",
        search->not_inited.path, search->executable);
}

static bool runs_32_bits(const struct search *search)
{
    unsigned char ident[EI_NIDENT];
    AUTO_CLOSE int fd = openat(search->proc_fd, "exe", O_RDONLY | O_CLOEXEC);
    return fd >= 0 && read(fd, ident, sizeof ident) == sizeof ident &&
           memcmp(ident, ELFMAG, SELFMAG) == 0 && ident[EI_CLASS] == ELFCLASS32;
}

/* A program that the loader is still at work at maps more from moment to moment. */
static bool is_loading(const struct search *search)
{
    struct maps now;
    if (maps_read(search->proc_fd, &now))
        return false;
    bool grew = now.count > search->maps.count;
    maps_done(&now);
    return grew;
}

static int explain_none(const struct search *search, struct failure *why)
{
    if (is_loading(search))
        return failure_set(why, -EAGAIN,
                           "no Python is in it yet, but it (%s) is just starting: another try in a "
                           "moment will tell",
                           search->executable);
    if (runs_32_bits(search))
        return failure_set(
            why, -ENOENT,
            "no Python can be found in it: it runs %s, a 32-bit program, and those of "
            "64 bits alone can be read here",
            search->executable);
    if (!search->maps.count)
        return failure_set(why, -ENOENT, "it is no Python: %s has no memory of its own",
                           search->executable);
    if (search->unopened)
        return failure_set(why, -ENOENT,
                           "no Python was found in it: it runs %s; %zu of its %zu mapped objects "
                           "could not be opened, which more rights may mend",
                           search->executable, search->unopened, search->object_count);
    return failure_set(why, -ENOENT,
                       "it is no Python: it runs %s, and neither the symbols nor the memory of its "
                       "%zu mapped objects show a CPython runtime",
                       search->executable, search->object_count);
}

static int search_explain(const struct search *search, int error, struct failure *why)
{
    switch (error) {
    case -EPERM:
        return failure_set(why, error, "its memory map or its memory may not be read");
    case -ESRCH:
        return failure_set(why, error, "it ended while Python was looked for in it");
    case -ENOMEM:
        return failure_set(why, error, "out of memory while looking for Python in it");
    }
    if (search->unknown.seen)
        return explain_unknown(search, why);
    if (search->not_inited.seen)
        return explain_not_inited(search, why);
    return explain_none(search, why);
}

/* What it runs: the path, or like ps(1) the name in brackets where there is no path to see. */
static void executable_read(struct search *search)
{
    char comm[32] = "";
    ssize_t length = readlinkat(search->proc_fd, "exe", search->executable, PATH_MAX - 1);
    if (length > 0) {
        search->executable[length] = '\0';
        path_cut_deleted(search->executable);
        return;
    }
    AUTO_CLOSE int fd = openat(search->proc_fd, "comm", O_RDONLY | O_CLOEXEC);
    length = fd < 0 ? 0 : read(fd, comm, sizeof comm - 1);
    comm[length > 0 ? length - 1 : 0] = '\0';
    snprintf(search->executable, PATH_MAX, "[%s]", comm);
}

/* Zombies have an empty map, as kernel threads have. The state stands behind the name: proc(5). */
static bool process_ended(int proc_fd)
{
    char text[128] = "";
    AUTO_CLOSE int fd = openat(proc_fd, "stat", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, text, sizeof text - 1) < 0)
        return true;
    const char *name_end = strrchr(text, ')');
    return name_end && (strncmp(name_end, ") Z", 3) == 0 || strncmp(name_end, ") X", 3) == 0);
}

static int search_run(struct search *search)
{
    int error = maps_read(search->proc_fd, &search->maps);
    if (error)
        return error;
    if (!search->maps.count && process_ended(search->proc_fd))
        return -ESRCH;
    long count = mapped_objects_list(&search->maps, search->executable, &search->objects);
    if (count < 0)
        return (int)count;
    search->object_count = (size_t)count;
    int result = names_try(search);
    bool settled = result || search->unknown.seen;
    return settled ? result : contents_try(search);
}

int python_find(struct remote *memory, int proc_fd, const struct python_judge *judge,
                struct python_location *ret, struct failure *why)
{
    CLEANUP(search_done)
    struct search search = {
        .memory = memory,
        .proc_fd = proc_fd,
        .judge = judge,
    };
    executable_read(&search);
    int result = search_run(&search);
    if (result <= 0)
        return search_explain(&search, result, why);
    *ret = search.found;
    return 0;
}
