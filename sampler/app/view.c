#include "sampler/app/view.h"

#include "output/cli/profile_table.h"
#include "output/cli/screen_width.h"
#include "output/cli/style.h"
#include "output/json/profile_json.h"
#include "sampler/base/cleanup.h"

#include <string.h>

DEFINE_CLEANUP(struct report *, report_free)

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

/* Everything up to the end, for a profile may come through a pipe. */
static int bytes_read(FILE *from, char **ret_bytes, size_t *ret_size)
{
    AUTO_FREE char *bytes = NULL;
    size_t size = 0, room = 0;
    do {
        room = room ? 2 * room : 65536;
        char *more = realloc(bytes, room);
        if (!more)
            return -ENOMEM;
        bytes = more;
        size += fread(bytes + size, 1, room - size, from);
    } while (size == room);
    if (ferror(from))
        return -EIO;
    *ret_bytes = TAKE_PTR(bytes);
    *ret_size = size;
    return 0;
}

static int report_load(const struct view_request *request, struct report **ret, struct failure *why)
{
    const char *file = request->file ? request->file : VIEW_USUAL_FILE;
    AUTO_FREE char *bytes = NULL;
    size_t size = 0;
    AUTO_FCLOSE FILE *from = fopen(file, "re");
    if (!from)
        return file_explain(file, request->file, why);
    int error = bytes_read(from, &bytes, &size);
    if (error == -EIO)
        return file_explain(file, request->file, why);
    if (error)
        return failure_set(why, error, "out of memory");
    return profile_json_read(bytes, size, file, request->version, ret, why);
}

int view_run(const struct view_request *request, struct failure *why)
{
    CLEANUP(report_freep) struct report *report = NULL;
    int error = report_load(request, &report, why);
    if (error)
        return error;
    const struct table_settings settings = {
        .width = screen_width(stdout),
        .coloured = style_wanted(stdout),
        .reduced = request->reduced,
        .cpu_percent_threshold = request->cpu_percent_threshold,
        .malloc_threshold = request->malloc_threshold,
    };
    if (profile_table_write(stdout, report, &settings))
        return failure_set(why, -ENOMEM, "out of memory");
    if (fflush(stdout) || ferror(stdout))
        return failure_set(why, -EIO, "standard output cannot be written: %s", strerror(errno));
    return 0;
}
