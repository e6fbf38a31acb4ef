/*
 * A folder that looks like /proc/PID to those who read it: tests lay out what a process in any
 * namespace would show, without one and without rights.
 */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct fake_proc {
    char folder[128];
    int fd;
    char maps[16384];
};

static inline void fake_proc_init(struct fake_proc *proc)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(proc->folder, sizeof proc->folder, "%s/scalene-attach-XXXXXX",
             temporary ? temporary : "/tmp");
    assert_non_null(mkdtemp(proc->folder));
    proc->fd = open(proc->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(proc->fd >= 0);
    proc->maps[0] = '\0';
}

static inline int fake_proc_remove(const char *path, const struct stat *status, int kind,
                                   struct FTW *where)
{
    (void)status, (void)kind, (void)where;
    return remove(path);
}

static inline void fake_proc_done(struct fake_proc *proc)
{
    close(proc->fd);
    nftw(proc->folder, fake_proc_remove, 16, FTW_DEPTH | FTW_PHYS);
}

/* The path of something in the folder, with the folders above it made; valid until the next call.
 */
static inline const char *fake_path(struct fake_proc *proc, const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", proc->folder, name);
    for (char *slash = path + strlen(proc->folder) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    return path;
}

static inline void fake_write(struct fake_proc *proc, const char *name, const void *bytes,
                              size_t size)
{
    int fd = open(fake_path(proc, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), size);
    close(fd);
}

static inline void fake_link(struct fake_proc *proc, const char *name, const char *target)
{
    assert_int_equal(symlink(target, fake_path(proc, name)), 0);
}

static inline struct stat fake_stat(struct fake_proc *proc, const char *name)
{
    struct stat status;
    assert_int_equal(stat(fake_path(proc, name), &status), 0);
    return status;
}

/* A line of maps, for a file when `of` is not NULL. */
static inline void fake_map(struct fake_proc *proc, uint64_t start, uint64_t end,
                            const char *permissions, uint64_t offset, const struct stat *of,
                            const char *path)
{
    size_t used = strlen(proc->maps);
    snprintf(proc->maps + used, sizeof proc->maps - used, "%llx-%llx %s %08llx %02x:%02x %llu %s\n",
             (unsigned long long)start, (unsigned long long)end, permissions,
             (unsigned long long)offset, of ? major(of->st_dev) : 0, of ? minor(of->st_dev) : 0,
             of ? (unsigned long long)of->st_ino : 0, path);
    fake_write(proc, "maps", proc->maps, strlen(proc->maps));
}
