#define _GNU_SOURCE 1 /* O_PATH, syscall */
#include "sampler/app/sources.h"

#include "sampler/app/zip_member.h"
#include "sampler/base/cleanup.h"
#include "sampler/target/proc_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { PLACES_MAX = 64 };

/* A root folder as one user sees it. */
struct source_place {
    int root_fd;
    dev_t device;
    ino_t inode;
    uid_t user;
    gid_t group;
};

struct sources {
    struct source_reader reader; /* first, so that a struct source_reader * leads back here */
    struct source_place places[PLACES_MAX];
    size_t place_count;
};

/* In a place's root: links of it and `..` lead nowhere else. */
static int path_open_in(int root_fd, const char *path)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
    int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof how);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM)) /* before Linux 5.6, or a sandbox */
        fd = openat(root_fd, path + strspn(path, "/"), O_PATH | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* To read, when it is a file: a pipe would make us wait, and a device may act on being opened. */
static int file_open_in(int root_fd, const char *path, struct stat *ret)
{
    AUTO_CLOSE int found_fd = path_open_in(root_fd, path);
    char link[64];
    if (found_fd < 0)
        return found_fd;
    if (fstat(found_fd, ret) < 0)
        return -errno;
    if (!S_ISREG(ret->st_mode))
        return -EISDIR;
    snprintf(link, sizeof link, "/proc/self/fd/%d", found_fd);
    int fd = open(link, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int file_read(int fd, size_t limit, char **ret_bytes, size_t *ret_size)
{
    AUTO_FREE char *bytes = NULL;
    size_t size = 0, room = 0;
    for (;;) {
        if (size == room) {
            room = room ? 2 * room : 64 << 10;
            char *grown = realloc(bytes, room);
            if (!grown)
                return -ENOMEM;
            bytes = grown;
        }
        ssize_t count = read(fd, bytes + size, room - size);
        if (count < 0 && errno != EINTR)
            return -errno;
        if (count == 0)
            break;
        if (count > 0)
            size += (size_t)count;
        if (size > limit) /* however big it said it was */
            return -EFBIG;
    }
    *ret_bytes = TAKE_PTR(bytes);
    *ret_size = size;
    return 0;
}

static void source_stamp(struct source *source, const struct stat *status)
{
    source->modified_s = (double)status->st_mtim.tv_sec + (double)status->st_mtim.tv_nsec * 1e-9;
}

/* Of the folders in `path` the first that is a file must be an archive, and the rest its member. */
static int member_read(int root_fd, char *path, struct source *ret)
{
    for (char *at = path + strlen(path); at > path; at--) {
        struct stat status;
        if (*at != '/')
            continue;
        *at = '\0';
        AUTO_CLOSE int fd = file_open_in(root_fd, path, &status);
        if (fd >= 0) {
            source_stamp(ret, &status);
            return zip_member_read(fd, at + 1, SOURCE_SIZE_LIMIT, &ret->bytes, &ret->size);
        }
        if (fd != -ENOTDIR && fd != -ENOENT)
            return fd;
        *at = '/';
    }
    return -ENOENT;
}

static int path_read(int root_fd, const char *path, struct source *ret)
{
    struct stat status;
    AUTO_CLOSE int fd = file_open_in(root_fd, path, &status);
    if (fd == -ENOTDIR) {
        AUTO_FREE char *copy = strdup(path);
        return copy ? member_read(root_fd, copy, ret) : -ENOMEM;
    }
    if (fd < 0)
        return fd;
    source_stamp(ret, &status);
    return file_read(fd, SOURCE_SIZE_LIMIT, &ret->bytes, &ret->size);
}

/* With the user's rights alone; changes nothing where we have no more than ours. */
static int place_read(const struct source_place *place, const char *path, struct source *ret)
{
    gid_t own_group = (gid_t)setfsgid(place->group);
    uid_t own_user = (uid_t)setfsuid(place->user);
    int error = path_read(place->root_fd, path, ret);
    setfsuid(own_user);
    setfsgid(own_group);
    return error;
}

static int own_read(const char *path, struct source *ret)
{
    AUTO_CLOSE int root_fd = open("/", O_PATH | O_CLOEXEC);
    return root_fd < 0 ? -errno : path_read(root_fd, path, ret);
}

static int sources_read(struct source_reader *reader, const char *file, struct source *ret)
{
    struct sources *sources = (struct sources *)reader;
    struct source found = { 0 };
    if (*file != '/') /* <string>, or relative to who knows what */
        return -ENOENT;
    int error = sources->place_count ? -ENOENT : own_read(file, &found);
    for (size_t i = 0; error && i < sources->place_count; i++)
        error = place_read(&sources->places[i], file, &found);
    if (!error)
        *ret = found;
    return error;
}

static bool place_is_known(const struct sources *sources, const struct source_place *place)
{
    for (size_t i = 0; i < sources->place_count; i++) {
        const struct source_place *known = &sources->places[i];
        if (known->device == place->device && known->inode == place->inode &&
            known->user == place->user && known->group == place->group)
            return true;
    }
    return false;
}

int sources_add_process(struct sources *sources, int proc_fd)
{
    char status_text[8192];
    struct stat status;
    int error = proc_read_file(proc_fd, "status", status_text, sizeof status_text);
    if (error < 0)
        return error;
    AUTO_CLOSE int root_fd = openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0 || fstat(root_fd, &status) < 0)
        return errno == EACCES ? -EPERM : -errno;

    /* The real ones: a user who runs a setuid program is still that user. */
    struct source_place place = { .device = status.st_dev,
                                  .inode = status.st_ino,
                                  .user = (uid_t)proc_find_number(status_text, "Uid", 10),
                                  .group = (gid_t)proc_find_number(status_text, "Gid", 10) };
    if (sources->place_count == PLACES_MAX || place_is_known(sources, &place))
        return 0;
    place.root_fd = TAKE_FD(root_fd);
    sources->places[sources->place_count++] = place;
    return 0;
}

int sources_new(struct sources **ret)
{
    struct sources *sources = calloc(1, sizeof *sources);
    if (!sources)
        return -ENOMEM;
    sources->reader.read = sources_read;
    *ret = sources;
    return 0;
}

void sources_free(struct sources *sources)
{
    for (size_t i = 0; i < sources->place_count; i++)
        close(sources->places[i].root_fd);
    free(sources);
}

struct source_reader *sources_reader(struct sources *sources)
{
    return &sources->reader;
}
