/* Any bytes as a zip archive, asked for a member: an error, or as many bytes as it says. */
#define _GNU_SOURCE 1 /* memfd_create */
#include "sampler/app/zip_member.h"
#include "sampler/base/cleanup.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { LIMIT = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_CLOSE int fd = memfd_create("zip", MFD_CLOEXEC);
    AUTO_FREE char *bytes = NULL;
    size_t count = LIMIT + 1;
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    int error = zip_member_read(fd, "a.py", LIMIT, &bytes, &count);
    if (error ? error > 0 || bytes : !bytes || count > LIMIT)
        abort();
    return 0;
}
