/* Groups mappings into objects and ranks them by name. Opens nothing. */
#define _GNU_SOURCE 1 /* strcasestr */

#include "symbols/mapped_objects.h"

#include "sampler/base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static enum object_rank path_rank(const char *path, const char *executable)
{
    const char *base = path_base(path);
    if (strncmp(base, "libpython", 9) == 0)
        return OBJECT_LIBPYTHON;
    if (strcmp(path, executable) == 0)
        return OBJECT_EXECUTABLE;
    if (strcasestr(base, "python") && !strstr(base, ".cpython-"))
        return OBJECT_PYTHON_NAMED;
    return OBJECT_OTHER;
}

static bool mapping_anonymous(const struct mapping *mapping)
{
    return mapping->inode == 0 && (!*mapping->path || strncmp(mapping->path, "[anon:", 6) == 0);
}

/* How many mappings from `first` on are one object's: the same file onwards, and .bss right behind
 * it. */
static size_t run_length(const struct mapping *first, const struct mapping *end)
{
    const struct mapping *last = first;
    uint64_t offset = first->file_offset;
    for (const struct mapping *next = first + 1; next < end; next++) {
        bool same = next->inode == first->inode && next->device == first->device &&
                    next->file_offset >= offset;
        bool bss = mapping_anonymous(next) && next->start == last->end && last->writable;
        if (same)
            offset = next->file_offset;
        if (same || bss)
            last = next;
        else if (!mapping_anonymous(next))
            break;
    }
    return (size_t)(last - first) + 1;
}

static bool object_listed(const struct mapped_object *object)
{
    bool writable = false, executable = object->rank != OBJECT_OTHER;
    for (size_t i = 0; i < object->count; i++) {
        writable |= object->mappings[i].writable;
        executable |= object->mappings[i].executable;
    }
    return writable && executable;
}

static int object_compare(const void *left, const void *right)
{
    const struct mapped_object *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return (a->mappings > b->mappings) - (a->mappings < b->mappings);
}

long mapped_objects_list(const struct maps *maps, const char *executable,
                         struct mapped_object **ret)
{
    AUTO_FREE struct mapped_object *list = calloc(maps->count + 1, sizeof *list);
    if (!list)
        return -ENOMEM;
    long count = 0;
    const struct mapping *end = maps->list + maps->count;
    for (const struct mapping *first = maps->list; first < end;) {
        struct mapped_object object = { first, 1, OBJECT_OTHER };
        if (first->inode) {
            object.count = run_length(first, end);
            object.rank = path_rank(first->path, executable);
            if (object_listed(&object))
                list[count++] = object;
        }
        first += object.count;
    }
    qsort(list, (size_t)count, sizeof *list, object_compare);
    *ret = TAKE_PTR(list);
    return count;
}

/* "3.8", "-3.8.1", "-38": what may stand behind "python". */
static uint32_t version_of_digits(const char *text)
{
    unsigned parts[2] = { 0, 0 };
    text += *text == '-';
    if (!isdigit((unsigned char)*text))
        return 0;
    parts[0] = (unsigned)(*text++ - '0');
    text += *text == '.';
    if (!isdigit((unsigned char)*text))
        return 0;
    for (int i = 0; i < 2 && isdigit((unsigned char)*text); i++)
        parts[1] = parts[1] * 10 + (unsigned)(*text++ - '0');
    return parts[0] == 2 || parts[0] == 3 ? parts[0] << 24 | parts[1] << 16 : 0;
}

uint32_t version_of_path(const char *path)
{
    uint32_t version = 0;
    for (const char *at = path; (at = strstr(at, "python"));) {
        at += 6;
        uint32_t said = version_of_digits(at);
        version = said ? said : version;
    }
    return version;
}

uint32_t version_of_maps(const struct maps *maps)
{
    uint32_t version = 0;
    for (size_t i = 0; i < maps->count && !version; i++)
        version = version_of_path(maps->list[i].path);
    return version;
}

uint32_t version_of_object(const char *path, const struct maps *maps)
{
    const char *base = strrchr(path, '/');
    uint32_t version = version_of_path(base ? base : path);
    return version ? version : version_of_maps(maps);
}
