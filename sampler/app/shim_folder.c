#define _GNU_SOURCE 1 /* mkdtemp */

#include "sampler/app/shim_folder.h"

#include "sampler/base/cleanup.h"
#include "sampler/loop/ring_reader.h"

#include <ctype.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define LIBRARY "libscalene_shim.so"
#define RING "ring"
#define TOKEN "$LIB/" /* ld.so(8) */
#define PARENT "/tmp"
#define PREFIX "scalene-attach-shim-"

enum { PATH_SIZE = 64 };

struct shim_folder {
    int fd;
    char path[PATH_SIZE];
    char library[PATH_SIZE + sizeof LIBRARY + 1];
    char preload[PATH_SIZE + sizeof TOKEN + sizeof LIBRARY + 1];
};

DEFINE_CLEANUP(char *, free)

/* ---- the library that we bring along ---- */

/* Beside the program, as it is built, or where it is installed: relative to it. */
static const char *const library_places[] = { "", "../lib/scalene-attach/" };

int shim_library_find(char *into, size_t size, struct failure *why)
{
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(program, '/');
    if (slash)
        slash[1] = '\0';
    for (size_t i = 0; i < sizeof library_places / sizeof *library_places; i++) {
        snprintf(into, size, "%s%s" LIBRARY, program, library_places[i]);
        if (access(into, R_OK) == 0)
            return 0;
    }
    return failure_set(why, -ENOENT, LIBRARY " is not where scalene-attach was installed");
}

static int library_copy(int from, int folder_fd)
{
    struct stat stat;
    AUTO_CLOSE int into =
        openat(folder_fd, LIBRARY, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0755);
    if (into < 0 || fstat(from, &stat) < 0 || fchmod(into, 0755) < 0)
        return -errno;
    for (off_t left = stat.st_size; left > 0;) {
        ssize_t sent = sendfile(into, from, NULL, (size_t)left);
        if (sent <= 0)
            return sent ? -errno : -EIO;
        left -= sent;
    }
    return 0;
}

/* A copy is found in another root folder with the same /tmp, and after the program was removed; but
 * no code runs from a /tmp that is mounted so. */
static int library_bring(const char *library, int folder_fd)
{
    struct statvfs mount;
    if (fstatvfs(folder_fd, &mount) == 0 && (mount.f_flag & ST_NOEXEC))
        return symlinkat(library, folder_fd, LIBRARY) < 0 ? -errno : 0;
    AUTO_CLOSE int from = open(library, O_RDONLY | O_CLOEXEC);
    return from < 0 ? -errno : library_copy(from, folder_fd);
}

/* ---- the name that glibc alone understands ---- */

/* The parts of what $LIB stands for: lib, lib64, and Debian's lib/x86_64-linux-gnu. */
static const char *const place_parts[] = { "lib", "lib64", "x86_64-linux-gnu",
                                           "aarch64-linux-gnu" };

enum { PLACE_PARTS = sizeof place_parts / sizeof *place_parts };

/* Each is the folder itself, so that the library has its ring beside it wherever it is found. */
static int places_make(int folder_fd)
{
    for (size_t i = 0; i < PLACE_PARTS; i++)
        if (symlinkat(".", folder_fd, place_parts[i]) < 0)
            return -errno;
    return 0;
}

/* It opens the file, and loads nothing. */
static bool loader_finds(const char *library)
{
    dlerror();
    dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    return !dlerror();
}

/* ---- what others left ---- */

static bool file_names(const char *file, char separator, const char *text)
{
    CLEANUP(freep) char *part = NULL;
    size_t size = 0;
    AUTO_FCLOSE FILE *from = fopen(file, "re");
    while (from && getdelim(&part, &size, separator, from) > 0)
        if (strstr(part, text))
            return true;
    return false;
}

/* Text of proc(5), /proc/PID/maps: range, access, offset, device, inode, path. */
bool shim_has_ring(pid_t pid, ino_t ring)
{
    char file[64];
    CLEANUP(freep) char *line = NULL;
    size_t size = 0;
    snprintf(file, sizeof file, "/proc/%d/maps", pid);
    AUTO_FCLOSE FILE *from = fopen(file, "re");
    while (from && getline(&line, &size, from) > 0) {
        unsigned long inode = 0;
        if (strstr(line, "/memfd:" RING_FILE_NAME) &&
            (!ring || (sscanf(line, "%*s %*s %*s %*s %lu", &inode) == 1 && inode == ring)))
            return true;
    }
    return false;
}

static bool is_used(const char *folder)
{
    char file[64];
    AUTO_CLOSEDIR DIR *processes = opendir("/proc");
    struct dirent *entry;
    while (processes && (entry = readdir(processes))) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        snprintf(file, sizeof file, "/proc/%.16s/environ", entry->d_name);
        if (file_names(file, '\0', folder))
            return true;
        snprintf(file, sizeof file, "/proc/%.16s/maps", entry->d_name);
        if (file_names(file, '\n', folder))
            return true;
    }
    return false;
}

static void folder_remove(int fd, const char *path)
{
    unlinkat(fd, LIBRARY, 0);
    for (size_t i = 0; i < PLACE_PARTS; i++)
        unlinkat(fd, place_parts[i], 0);
    rmdir(path);
}

/* One that is empty yet is not locked yet. */
static void stale_remove(const char *path)
{
    struct stat stat;
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &stat) < 0 || stat.st_uid != geteuid() ||
        faccessat(fd, LIBRARY, F_OK, AT_SYMLINK_NOFOLLOW) < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return;
    unlinkat(fd, RING, 0); /* its process is gone, and another may have the number */
    if (!is_used(path))
        folder_remove(fd, path);
}

static void stale_sweep(void)
{
    char path[PATH_SIZE];
    AUTO_CLOSEDIR DIR *parent = opendir(PARENT);
    struct dirent *entry;
    while (parent && (entry = readdir(parent))) {
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0)
            continue;
        int length = snprintf(path, sizeof path, PARENT "/%s", entry->d_name);
        if (length < (int)sizeof path)
            stale_remove(path);
    }
}

/* ---- ours ---- */

void shim_folder_close(struct shim_folder *folder, bool may_be_used)
{
    if (!folder)
        return;
    if (folder->fd >= 0) {
        unlinkat(folder->fd, RING, 0);
        if (!may_be_used || !is_used(folder->path))
            folder_remove(folder->fd, folder->path);
        close(folder->fd);
    }
    free(folder);
}

static void folder_drop(struct shim_folder *folder)
{
    shim_folder_close(folder, false);
}

DEFINE_CLEANUP(struct shim_folder *, folder_drop)

static int folder_make(struct shim_folder *folder)
{
    snprintf(folder->path, sizeof folder->path, PARENT "/" PREFIX "XXXXXX");
    if (!mkdtemp(folder->path))
        return -errno;
    folder->fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder->fd < 0 || flock(folder->fd, LOCK_EX) < 0 || fchmod(folder->fd, 0711) < 0)
        return -errno;
    snprintf(folder->library, sizeof folder->library, "%s/" LIBRARY, folder->path);
    return places_make(folder->fd);
}

/* A C library that has yet another place for $LIB is told the library's own. */
static void folder_name(struct shim_folder *folder)
{
    snprintf(folder->preload, sizeof folder->preload, "%s/" TOKEN LIBRARY, folder->path);
    if (!loader_finds(folder->preload))
        snprintf(folder->preload, sizeof folder->preload, "%s", folder->library);
}

int shim_folder_open(const char *library, int ring_fd, struct shim_folder **ret,
                     struct failure *why)
{
    char ring[PATH_SIZE];
    CLEANUP(folder_dropp) struct shim_folder *folder = calloc(1, sizeof *folder);
    if (!folder)
        return failure_set(why, -ENOMEM, "out of memory");
    folder->fd = -1;
    stale_sweep();
    snprintf(ring, sizeof ring, "/proc/%d/fd/%d", getpid(), ring_fd);
    int error = folder_make(folder);
    if (!error && symlinkat(ring, folder->fd, RING) < 0)
        error = -errno;
    if (!error)
        error = library_bring(library, folder->fd);
    if (error)
        return failure_set(why, error, "the shim could not be brought to " PARENT ": %s",
                           strerror(-error));
    folder_name(folder);
    *ret = TAKE_PTR(folder);
    return 0;
}

const char *shim_folder_library(const struct shim_folder *folder)
{
    return folder->library;
}

const char *shim_folder_preload(const struct shim_folder *folder)
{
    return folder->preload;
}
