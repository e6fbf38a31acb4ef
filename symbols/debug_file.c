#include "symbols/debug_file.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/error.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

enum { BUILD_ID_LIMIT = 64 };

struct build_id {
    unsigned char bytes[BUILD_ID_LIMIT];
    size_t size;
};

static int build_id_read(const struct elf_file *file, struct build_id *ret)
{
    const void *bytes;
    ssize_t size = dwelf_elf_gnu_build_id(elf_file_handle(file), &bytes);
    if (size < 2 || size > BUILD_ID_LIMIT)
        return -ENOENT;
    memcpy(ret->bytes, bytes, (size_t)size);
    ret->size = (size_t)size;
    return 0;
}

static int file_try(int folder_fd, const char *path, const struct build_id *id,
                    struct elf_file **ret)
{
    struct build_id found;
    struct elf_file *file = NULL;
    AUTO_CLOSE int fd = openat(folder_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -ENOENT;
    int error = elf_file_open_fd(fd, &file);
    if (error)
        return error == -ENOMEM ? -ENOMEM : -ENOENT;
    if (build_id_read(file, &found) || found.size != id->size ||
        memcmp(found.bytes, id->bytes, id->size) != 0) {
        elf_file_close(file);
        return -ENOENT;
    }
    *ret = file;
    return 0;
}

/* `path` is absolute; what a build id proves is right wherever it comes from. */
static int path_try(int proc_fd, const char *path, const struct build_id *id, struct elf_file **ret)
{
    char below_root[PATH_MAX + sizeof "root"];
    snprintf(below_root, sizeof below_root, "root%s", path);
    int error = file_try(proc_fd, below_root, id, ret);
    return error == -ENOENT ? file_try(AT_FDCWD, path, id, ret) : error;
}

static int build_id_try(int proc_fd, const struct build_id *id, struct elf_file **ret)
{
    char path[64 + 2 * BUILD_ID_LIMIT];
    int length = snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%02x/", id->bytes[0]);
    for (size_t i = 1; i < id->size; i++)
        length += snprintf(path + length, sizeof path - (size_t)length, "%02x", id->bytes[i]);
    snprintf(path + length, sizeof path - (size_t)length, ".debug");
    return path_try(proc_fd, path, id, ret);
}

/* GDB manual, "Separate Debug Files": beside the object, in .debug beside it, below /usr/lib/debug.
 */
static int link_try(int proc_fd, const char *object_path, const char *link,
                    const struct build_id *id, struct elf_file **ret)
{
    static const char *const forms[] = { "%.*s/%s", "%.*s/.debug/%s", "/usr/lib/debug%.*s/%s" };
    const char *slash = strrchr(object_path, '/');
    int folder = slash ? (int)(slash - object_path) : 0, error = -ENOENT;
    if (object_path[0] != '/' || strchr(link, '/'))
        return -ENOENT;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0] && error == -ENOENT; i++) {
        char path[PATH_MAX];
        int length = snprintf(path, sizeof path, forms[i], folder, object_path, link);
        if (length > 0 && length < PATH_MAX)
            error = path_try(proc_fd, path, id, ret);
    }
    return error;
}

int debug_file_open(int proc_fd, const char *object_path, const struct elf_file *object,
                    struct elf_file **ret)
{
    struct build_id id;
    GElf_Word checksum;
    if (build_id_read(object, &id))
        return -ENOENT;
    int error = build_id_try(proc_fd, &id, ret);
    if (error != -ENOENT)
        return error;
    const char *link = dwelf_elf_gnu_debuglink(elf_file_handle(object), &checksum);
    return link ? link_try(proc_fd, object_path, link, &id, ret) : -ENOENT;
}
