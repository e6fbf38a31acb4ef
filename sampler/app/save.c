#define _GNU_SOURCE /* mkostemp */
#include "sampler/app/save.h"

#include "sampler/base/cleanup.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static const char *rank_text(void)
{
    static const char *const names[] = { "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
                                         "SLURM_PROCID" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return value;
    }
    return "0";
}

int save_path(const char *pattern, pid_t pid, char *into, size_t size)
{
    char host[256] = "localhost", number[16];
    gethostname(host, sizeof host - 1);
    snprintf(number, sizeof number, "%d", pid);
    size_t used = 0;
    for (; *pattern; pattern++) {
        char single[2] = { *pattern, '\0' };
        const char *part = single;
        if (*pattern == '%' && pattern[1] && strchr("phr%", pattern[1])) {
            pattern++;
            part = *pattern == 'p'   ? number
                   : *pattern == 'h' ? host
                   : *pattern == 'r' ? rank_text()
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

/* The mode that a plain open would have given. */
static mode_t usual_mode(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* A device or a pipe is written to: a file in its place would be the end of it. */
static bool is_special(const char *path)
{
    struct stat stat_buffer;
    return stat(path, &stat_buffer) == 0 && !S_ISREG(stat_buffer.st_mode) &&
           !S_ISDIR(stat_buffer.st_mode);
}

static int write_special(const char *path, const char *text, size_t size)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    return fd < 0 ? -errno : write_all(fd, text, size);
}

static int write_renamed(const char *path, const char *text, size_t size)
{
    char temporary[SAVE_PATH_SIZE];
    int length = snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    if (length < 0 || (size_t)length >= sizeof temporary)
        return -ENAMETOOLONG;
    AUTO_CLOSE int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int error = write_all(fd, text, size);
    if (!error && (fchmod(fd, usual_mode()) || rename(temporary, path)))
        error = -errno;
    if (error)
        unlink(temporary);
    return error;
}

static int folder_check(const char *path)
{
    char folder[SAVE_PATH_SIZE];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    return access(slash ? folder : ".", W_OK | X_OK) < 0 ? -errno : 0;
}

int save_check(const char *path, struct failure *why)
{
    struct stat stat_buffer;
    int error = 0;
    if (is_special(path))
        error = access(path, W_OK) < 0 ? -errno : 0;
    else if (!*path)
        error = -ENOENT;
    else
        error = stat(path, &stat_buffer) == 0 && S_ISDIR(stat_buffer.st_mode) ? -EISDIR
                                                                              : folder_check(path);
    if (error)
        failure_set(why, error, "the profile cannot be written to '%s': %s", path,
                    strerror(-error));
    return error;
}

int save_text(const char *path, const char *text, size_t size, char *ret_path, struct failure *why)
{
    int error =
        is_special(path) ? write_special(path, text, size) : write_renamed(path, text, size);
    if (!error) {
        snprintf(ret_path, SAVE_PATH_SIZE, "%s", path);
        *why = (struct failure){ 0 };
        return 0;
    }
    const char *folder = getenv("TMPDIR");
    char fallback[SAVE_PATH_SIZE];
    snprintf(fallback, sizeof fallback, "%s/scalene-profile-%d.json",
             folder && *folder ? folder : "/tmp", getpid());
    failure_set(why, error, "%s could not be written: %s", path, strerror(-error));
    error = write_renamed(fallback, text, size);
    if (error)
        return failure_set(why, error, "neither %s nor %s could be written: %s", path, fallback,
                           strerror(-error));
    snprintf(ret_path, SAVE_PATH_SIZE, "%s", fallback);
    return 0;
}
