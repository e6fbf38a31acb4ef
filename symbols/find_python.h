/*
 * Where in a process is the CPython runtime? Finds candidates by symbol, section, cookie and scan,
 * lets the caller judge them, and takes the first that validates. Never runs the target's binary;
 * reads only.
 */
#pragma once

#include "sampler/base/error.h"
#include "symbols/maps.h"

enum python_found_by {
    FOUND_BY_SYMBOL,  /* _PyRuntime in .dynsym or .symtab */
    FOUND_BY_SECTION, /* .PyRuntime: 3.10+, survives stripping */
    FOUND_BY_COOKIE,  /* "xdebugpy": 3.13+, needs no ELF at all */
    FOUND_BY_SCAN,    /* words of writable mappings that validate as an interpreter list */
    FOUND_BY_COUNT
};

struct python_location {
    remote_addr runtime;
    uint32_t version_hex; /* as in PY_VERSION_HEX; 0 when nothing tells */
    enum python_found_by by;
    char object_path[512]; /* the object that holds it, as the target's maps name it */
};

/* The judge, handed in by the caller because this module does not understand Python. */
struct python_judge {
    void *context;
    /* 0 when a known runtime stands there, -ENOTSUP when it is a CPython without a layout
     * (*ret_version says which), any other error when it is none. The hint is 0, or the first two
     * numbers of a version, which the target has to confirm, or a whole one, which is believed
     * where it says nothing else; the third number is 255 where nothing tells it. */
    int (*probe)(void *context, remote_addr runtime, uint32_t version_hint, uint32_t *ret_version);
    const uint32_t *head_offsets; /* see python_head_offsets() */
    unsigned methods; /* bit per enum python_found_by to try; 0: all (tests force one) */
};

/*
 * 0; -ENOENT: no Python in there (`why` says what the process is); -EAGAIN: a runtime is there, but
 * no interpreter in it (yet, or any more); -ENOTSUP: a CPython that we do not know (`why` says
 * which); -ESRCH, -EPERM, -ENOMEM.
 */
int python_find(struct remote *memory, int proc_fd, const struct python_judge *judge,
                struct python_location *ret, struct failure *why);
