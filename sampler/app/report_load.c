#include "sampler/app/report_load.h"

#include "output/json/profile_json.h"
#include "sampler/base/cleanup.h"

#include <string.h>
#include <sys/stat.h>

static int file_explain(const char *file, bool named, struct failure *why)
{
    int error = -errno;
    if (error == -ENOENT && !named)
        return failure_set(why, error,
                           "there is no %s here; name another one (scalene-attach view FILE), or "
                           "make one: scalene-attach --pid N",
                           file);
    return failure_set(why, error, "the profile %s cannot be read: %s", file, strerror(-error));
}

/* How much is there to read; 0 where that is not known before. */
static size_t size_expected(FILE *from)
{
    struct stat kind;
    return fstat(fileno(from), &kind) == 0 && S_ISREG(kind.st_mode) ? (size_t)kind.st_size : 0;
}

/* Everything up to the end, for a profile may come through a pipe, and zeros behind it. */
static int bytes_read(FILE *from, char **ret_bytes, size_t *ret_size)
{
    enum { LEAST = 65536 };
    size_t size = 0, room = size_expected(from) + LEAST;
    AUTO_FREE char *bytes = malloc(room);
    while (bytes) {
        size += fread(bytes + size, 1, room - PROFILE_JSON_PADDING - size, from);
        if (size < room - PROFILE_JSON_PADDING)
            break;
        room *= 2;
        char *more = realloc(bytes, room);
        if (!more)
            return -ENOMEM;
        bytes = more;
    }
    if (!bytes)
        return -ENOMEM;
    if (ferror(from))
        return -EIO;
    memset(bytes + size, 0, PROFILE_JSON_PADDING);
    *ret_bytes = TAKE_PTR(bytes);
    *ret_size = size;
    return 0;
}

int report_load(const char *named, const char *version, struct report **ret, struct failure *why)
{
    const char *file = named ? named : VIEW_USUAL_FILE;
    AUTO_FREE char *bytes = NULL;
    size_t size = 0;
    AUTO_FCLOSE FILE *from = fopen(file, "re");
    if (!from)
        return file_explain(file, named, why);
    int error = bytes_read(from, &bytes, &size);
    if (error == -EIO)
        return file_explain(file, named, why);
    if (error)
        return failure_set(why, error, "out of memory");
    return profile_json_read_in_place(bytes, size, file, version, ret, why);
}
