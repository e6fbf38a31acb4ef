#include "sampler/app/source_files.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/error.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { SIZE_MAX_READ = 64 << 20 };

struct source_files {
    struct source_reader reader; /* first: the seam leads back here */
};

static int bytes_read(int fd, size_t size, struct source *ret)
{
    char *bytes = malloc(size + 1);
    size_t used = 0;
    if (!bytes)
        return -ENOMEM;
    while (used < size) {
        ssize_t got = read(fd, bytes + used, size - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        used += (size_t)got;
    }
    ret->bytes = bytes;
    ret->size = used;
    return 0;
}

static int file_read(struct source_reader *self, const char *file, struct source *ret)
{
    struct stat stat;
    (void)self;
    AUTO_CLOSE int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &stat) || !S_ISREG(stat.st_mode) || stat.st_size > SIZE_MAX_READ)
        return -ENOENT;
    ret->modified_s = (double)stat.st_mtim.tv_sec + 1e-9 * (double)stat.st_mtim.tv_nsec;
    return bytes_read(fd, (size_t)stat.st_size, ret);
}

int source_files_new(struct source_files **ret)
{
    struct source_files *files = calloc(1, sizeof *files);
    if (!files)
        return -ENOMEM;
    files->reader.read = file_read;
    *ret = files;
    return 0;
}

void source_files_free(struct source_files *files)
{
    free(files);
}

struct source_reader *source_files_reader(struct source_files *files)
{
    return &files->reader;
}
