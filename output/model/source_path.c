#include "output/model/source_path.h"

#include <stdio.h>
#include <string.h>

/* Drops the last part of the path that is written so far, but never its leading slash. */
static size_t last_part_drop(const char *path, size_t length)
{
    while (length > 0 && path[length - 1] != '/')
        length--;
    return length > 1 ? length - 1 : length;
}

static size_t part_add(char *path, size_t length, size_t size, const char *part, size_t part_length)
{
    if (part_length == 0 || (part_length == 1 && part[0] == '.'))
        return length;
    if (part_length == 2 && part[0] == '.' && part[1] == '.')
        return last_part_drop(path, length);
    if (length + part_length + 2 > size)
        return length;
    if (length > 1)
        path[length++] = '/';
    memcpy(path + length, part, part_length);
    return length + part_length;
}

static size_t parts_add(char *path, size_t length, size_t size, const char *from)
{
    while (*from) {
        size_t part_length = strcspn(from, "/");
        length = part_add(path, length, size, from, part_length);
        from += part_length + (from[part_length] == '/');
    }
    return length;
}

void source_path_write(const char *file, const char *cwd, char *path, size_t size)
{
    if (file[0] != '/' && (file[0] == '<' || !cwd || cwd[0] != '/')) {
        snprintf(path, size, "%s", file);
        return;
    }
    path[0] = '/';
    size_t length = 1;
    if (file[0] != '/')
        length = parts_add(path, length, size, cwd);
    length = parts_add(path, length, size, file);
    path[length] = '\0';
}
