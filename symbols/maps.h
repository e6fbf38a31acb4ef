/* The mappings of a process, from the text of /proc/PID/maps, which is hostile like the rest. */
#pragma once

#include "sampler/base/remote.h"

#include <stdbool.h>
#include <sys/types.h>

struct mapping {
    remote_addr start, end;
    uint64_t file_offset;
    dev_t device;
    ino_t inode; /* 0: not backed by a file */
    bool readable, writable, executable;
    bool deleted;     /* the path ended in " (deleted)"; it is cut off */
    const char *path; /* "" if none, "[vdso]", "[stack]", …; escapes (\012) undone */
};

struct maps {
    struct mapping *list; /* sorted by address */
    size_t count;
    char *text; /* owns what the paths point into */
};

/* Parses text of /proc/PID/maps. Lines that make no sense are left out; -ENOMEM. */
int maps_parse(const char *text, size_t size, struct maps *ret);

/* Reads /proc/PID/maps below an open /proc/PID: 0, -ESRCH, -EPERM, -ENOMEM. */
int maps_read(int proc_fd, struct maps *ret);

void maps_done(struct maps *maps);

/* The mapping that holds the address, or NULL. */
const struct mapping *maps_find(const struct maps *maps, remote_addr address);

/* The kernel ends the path of a file that is no more in " (deleted)": was it there? It is cut off.
 */
bool path_cut_deleted(char *path);
