/*
 * Dicts of the target, and what its instances keep their attributes in. Threads may be running: a
 * dict that was rebuilt while it was read gives -EAGAIN after a few tries, single entries may be
 * newer or older than others.
 *
 * Common errors: -EAGAIN, -EBADMSG (no dict, or over DICT_ENTRIES_MAX), -EFAULT, -ESRCH, -EPERM,
 * -ENOMEM.
 */
#pragma once

#include "pyabi/integers.h"
#include "pyabi/layout.h"

#include <stddef.h>

#define DICT_ENTRIES_MAX ((size_t)1 << 20)

/*
 * Every live entry: in order of insertion, or, where the keys are shared between instances, in the
 * order of those keys. Ends early with what `entry` returns if that is not 0.
 */
int dict_walk(struct remote *memory, const struct py_layout *layout, remote_addr dict,
              int (*entry)(void *context, remote_addr key, remote_addr value), void *context);

/* By a key of ASCII characters. -ENOENT when there is none. */
int dict_find(struct remote *memory, const struct py_layout *layout, remote_addr dict,
              const char *key, remote_addr *ret_value);

/*
 * An attribute in the instance's own dict or values; class attributes and slots are not looked at,
 * neither is the dict of an object of variable size (before 3.12). -ENOENT when there is none.
 */
int instance_find(struct remote *memory, const struct py_layout *layout, remote_addr object,
                  const char *attribute, remote_addr *ret_value);

/*
 * What looking for one attribute taught about a type, so that the next instance costs three reads
 * instead of ten. Begins as zeros; good for one attribute name and one walk, since types change.
 */
struct attribute_memo {
    remote_addr type;
    uint64_t flags;
    int64_t basicsize, dictoffset;
    remote_addr cached_keys;
    remote_addr keys; /* the shared keys in which the attribute stands at `index` */
    size_t index;
};

int instance_find_next(struct remote *memory, const struct py_layout *layout, remote_addr object,
                       const char *attribute, struct attribute_memo *memo, remote_addr *ret_value);

/* tp_name of the object's type; -EBADMSG when it does not fit. */
int type_name_read(struct remote *memory, const struct py_layout *layout, remote_addr object,
                   char *into, size_t size);
