/*
 * Stands in for libFuzzer's main: runs every file of the folders named on the command line through
 * the fuzzer's entry, each in a block of exactly its size, so that a sanitizer sees a read past its
 * end.
 */
#include "sampler/base/cleanup.h"
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

static int file_replay(int folder_fd, const char *name)
{
    AUTO_CLOSE int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode))
        return 0;

    size_t size = (size_t)status.st_size;
    AUTO_FREE uint8_t *bytes = malloc(size ? size : 1);
    if (!bytes)
        return -ENOMEM;
    if (read(fd, bytes, size) != (ssize_t)size)
        return -EIO;
    LLVMFuzzerTestOneInput(bytes, size);
    return 1;
}

static int folder_replay(const char *path)
{
    AUTO_CLOSEDIR DIR *folder = opendir(path);
    int count = 0;

    if (!folder)
        return -errno;
    for (struct dirent *entry; (entry = readdir(folder));) {
        int result = file_replay(dirfd(folder), entry->d_name);
        if (result < 0)
            return result;
        count += result;
    }
    return count;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int count = folder_replay(argv[i]);
        if (count <= 0) { /* an empty corpus proves nothing */
            fprintf(stderr, "%s: %s\n", argv[i], count ? strerror(-count) : "no files");
            return 1;
        }
        printf("%s: %d files\n", argv[i], count);
    }
    return argc > 1 ? 0 : 2;
}
