/*
 * The objects that a process has mapped, in the order in which it pays to look for Python in them,
 * and what their names alone say about its version.
 */
#pragma once

#include "symbols/maps.h"

enum object_rank {
    OBJECT_LIBPYTHON,
    OBJECT_EXECUTABLE,
    OBJECT_PYTHON_NAMED, /* but no extension module */
    OBJECT_OTHER,
};

/* One run of mappings of one file. A file that is mapped twice is two objects. */
struct mapped_object {
    const struct mapping *mappings; /* with the anonymous .bss that follows without a gap */
    size_t count;
    enum object_rank rank;
};

/* Those that have data to write to, by rank, then by address: count or -ENOMEM. Caller frees. */
long mapped_objects_list(const struct maps *maps, const char *executable,
                         struct mapped_object **ret);

/* As PY_VERSION_HEX, from the last of "libpython3.8.so", "cpython-38", … in a path; 0: none. */
uint32_t version_of_path(const char *path);

/* The same from whichever mapped path tells first: extension modules and their folders do. */
uint32_t version_of_maps(const struct maps *maps);

/* From an object's own name, or else the maps. */
uint32_t version_of_object(const char *path, const struct maps *maps);
