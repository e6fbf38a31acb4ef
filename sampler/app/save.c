#define _GNU_SOURCE /* mkostemp, fopencookie */
#include "sampler/app/save.h"

#include "sampler/app/rank.h"
#include "sampler/base/cleanup.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

enum { LINKS_MOST = 40 }; /* as many as the kernel follows */

int save_path(const char *pattern, pid_t pid, char *into, size_t size)
{
    return save_path_of(pattern, pid, rank_own(), into, size);
}

int save_path_of(const char *pattern, pid_t pid, int rank, char *into, size_t size)
{
    char host[256] = "localhost", number[16], order[16];
    gethostname(host, sizeof host - 1);
    snprintf(number, sizeof number, "%d", pid);
    snprintf(order, sizeof order, "%d", rank < 0 ? 0 : rank);
    size_t used = 0;
    for (; *pattern; pattern++) {
        char single[2] = { *pattern, '\0' };
        const char *part = single;
        if (*pattern == '%' && pattern[1] && strchr("phr%", pattern[1])) {
            pattern++;
            part = *pattern == 'p'   ? number
                   : *pattern == 'h' ? host
                   : *pattern == 'r' ? order
                                     : "%";
        }
        if (used + strlen(part) + 1 > size)
            return -ENAMETOOLONG;
        memcpy(into + used, part, strlen(part));
        used += strlen(part);
    }
    into[used] = '\0';
    return 0;
}

/* ---- where a file of that name lies ---- */

struct place {
    char path[SAVE_PATH_SIZE];
    bool is_special; /* is written to: a file in its place would be the end of it */
};

static void folder_of(const char *path, char *into)
{
    snprintf(into, SAVE_PATH_SIZE, "%s", path);
    char *slash = strrchr(into, '/');
    if (slash)
        slash[slash == into] = '\0';
    else
        strcpy(into, ".");
}

/* There a link stands for what somebody holds open, whatever name it shows. */
static bool is_in_proc(const char *path)
{
    char folder[SAVE_PATH_SIZE];
    struct statfs found;
    folder_of(path, folder);
    return statfs(folder, &found) == 0 && found.f_type == PROC_SUPER_MAGIC;
}

/* From a link to what it points to, unless the kernel forbids that, as of links of others in /tmp.
 */
static int link_follow(char *place)
{
    char target[SAVE_PATH_SIZE], next[SAVE_PATH_SIZE];
    struct stat ignored;
    if (stat(place, &ignored) < 0 && errno != ENOENT)
        return -errno;
    ssize_t length = readlink(place, target, sizeof target);
    if (length < 0)
        return -errno;
    const char *slash = strrchr(place, '/');
    int folder = *target != '/' && slash ? (int)(slash + 1 - place) : 0;
    int size = snprintf(next, sizeof next, "%.*s%.*s", folder, place, (int)length, target);
    if (length == sizeof target || size >= SAVE_PATH_SIZE)
        return -ENAMETOOLONG;
    memcpy(place, next, (size_t)size + 1);
    return 0;
}

/* Through links, also to where nothing is yet: what is there is renamed over, and they stay. */
static int place_find(const char *path, struct place *ret)
{
    if (snprintf(ret->path, sizeof ret->path, "%s", path) >= SAVE_PATH_SIZE)
        return -ENAMETOOLONG;
    for (unsigned i = 0; i < LINKS_MOST; i++) {
        struct stat found;
        bool is_there = lstat(ret->path, &found) == 0;
        bool is_link = is_there && S_ISLNK(found.st_mode) && !is_in_proc(ret->path);
        ret->is_special = is_there && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode);
        if (!is_link)
            return 0;
        int error = link_follow(ret->path);
        if (error)
            return error;
    }
    return -ELOOP;
}

/* ---- writing ---- */

static int write_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, text, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? -errno : -EIO;
        text += written;
        size -= (size_t)written;
    }
    return 0;
}

/* A stream forgets why it could not write. */
struct sink {
    int fd, error;
};

static ssize_t sink_write(void *cookie, const char *bytes, size_t size)
{
    struct sink *sink = cookie;
    if (!sink->error)
        sink->error = write_all(sink->fd, bytes, size);
    return sink->error ? 0 : (ssize_t)size;
}

static int source_write(const struct save_source *source, int fd)
{
    struct sink sink = { .fd = fd };
    FILE *into = fopencookie(&sink, "w", (cookie_io_functions_t){ .write = sink_write });
    if (!into)
        return -ENOMEM;
    int error = source->write(source, into);
    if (fclose(into) && !error)
        error = -EIO;
    return sink.error ?: error;
}

/* The mode that a plain open would have given. */
static mode_t usual_mode(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

static int write_special(const char *path, const struct save_source *source)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
    return fd < 0 ? -errno : source_write(source, fd);
}

static int write_renamed(const char *path, const struct save_source *source)
{
    char temporary[SAVE_PATH_SIZE];
    int length = snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    if (length < 0 || (size_t)length >= sizeof temporary)
        return -ENAMETOOLONG;
    AUTO_CLOSE int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int error = source_write(source, fd);
    if (!error && (fchmod(fd, usual_mode()) || rename(temporary, path)))
        error = -errno;
    if (error)
        unlink(temporary);
    return error;
}

static int place_write(const char *path, const struct save_source *source)
{
    struct place place;
    int error = place_find(path, &place);
    if (error)
        return error;
    return place.is_special ? write_special(place.path, source) : write_renamed(place.path, source);
}

static int place_check(const char *path)
{
    char folder[SAVE_PATH_SIZE];
    struct place place;
    struct stat found;
    int error = *path ? place_find(path, &place) : -ENOENT;
    if (error)
        return error;
    if (!place.is_special && stat(place.path, &found) == 0 && S_ISDIR(found.st_mode))
        return -EISDIR;
    folder_of(place.path, folder);
    int allowed = place.is_special ? access(place.path, W_OK) : access(folder, W_OK | X_OK);
    return allowed < 0 ? -errno : 0;
}

int save_check(const char *path, struct failure *why)
{
    int error = place_check(path);
    if (error)
        failure_set(why, error, "the profile cannot be written to '%s': %s", path,
                    strerror(-error));
    return error;
}

/* What the file's name ends with, which may tell its format. */
static const char *extension_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *point = strchr(slash ? slash : path, '.');
    return point && strlen(point) < 64 ? point : ".json";
}

int save_write(const char *path, const struct save_source *source, char *ret_path,
               struct failure *why)
{
    int error = place_write(path, source);
    if (!error) {
        snprintf(ret_path, SAVE_PATH_SIZE, "%s", path);
        *why = (struct failure){ 0 };
        return 0;
    }
    const char *folder = getenv("TMPDIR");
    char fallback[SAVE_PATH_SIZE];
    snprintf(fallback, sizeof fallback, "%s/scalene-profile-%d%s",
             folder && *folder ? folder : "/tmp", getpid(), extension_of(path));
    failure_set(why, error, "%s could not be written: %s", path, strerror(-error));
    error = write_renamed(fallback, source);
    if (error)
        return failure_set(why, error, "neither %s nor %s could be written: %s", path, fallback,
                           strerror(-error));
    snprintf(ret_path, SAVE_PATH_SIZE, "%s", fallback);
    return 0;
}

struct text_source {
    struct save_source source; /* first, so that a struct save_source * leads back here */
    const char *text;
    size_t size;
};

static int text_write(const struct save_source *self, FILE *into)
{
    const struct text_source *text = (const struct text_source *)self;
    return fwrite(text->text, 1, text->size, into) == text->size ? 0 : -EIO;
}

int save_text(const char *path, const char *text, size_t size, char *ret_path, struct failure *why)
{
    const struct text_source source = { { text_write }, text, size };
    return save_write(path, &source.source, ret_path, why);
}
