#include "sampler/app/export.h"

#include "output/cli/closing_words.h"
#include "output/cli/screen_width.h"
#include "output/cli/style.h"
#include "sampler/app/formats.h"
#include "sampler/app/page_file.h"
#include "sampler/app/report_load.h"
#include "sampler/app/save.h"
#include "sampler/base/cleanup.h"

#include <string.h>

DEFINE_CLEANUP(struct report *, report_free)

/* Bytes that are no text would only spoil a terminal. */
static int stream_check(const struct format *format, struct failure *why)
{
    if (format->content == FORMAT_TEXT || !isatty(STDOUT_FILENO))
        return 0;
    char usual[64];
    format_usual_file(format, usual, sizeof usual);
    return failure_set(why, -EINVAL,
                       "%s is no text for a terminal: name a file with -o %s, or send it into a "
                       "pipe",
                       format->name, usual);
}

/* Nothing stands beside a stream. */
static int stream_write(const struct format *wanted, const struct report *report,
                        struct failure *why)
{
    const struct format *format = format_has_assets(wanted) ? format_find("standalone") : wanted;
    const struct table_settings table = {
        .width = screen_width(stdout),
        .coloured = style_wanted(stdout),
        .cpu_percent_threshold = 1,
        .malloc_threshold = 100,
    };
    int error = format_write(format, report, &table, stdout);
    if (error == -ENOMEM)
        return failure_set(why, error, "out of memory");
    if (fflush(stdout) || error)
        return failure_set(why, -EIO, "standard output cannot be written: %s", strerror(errno));
    return 0;
}

static int file_write(const struct format *format, const struct export_request *request,
                      const struct report *report, struct failure *why)
{
    const struct table_settings table = { .width = 80,
                                          .cpu_percent_threshold = 1,
                                          .malloc_threshold = 100 };
    AUTO_FREE char *text = NULL;
    size_t size = 0;
    char path[SAVE_PATH_SIZE], went_to[SAVE_PATH_SIZE];
    FILE *into = open_memstream(&text, &size);
    int error = into ? format_write(format, report, &table, into) : -ENOMEM;
    if (into && fclose(into))
        error = -ENOMEM;
    if (!error)
        error = save_path(request->output, getpid(), path, sizeof path);
    if (error)
        return failure_set(why, error, "%s could not be written: %s", request->output,
                           strerror(-error));
    error = save_text(path, text, size, went_to, why);
    if (!error && format_has_assets(format))
        error = page_file_assets(went_to, why);
    if (!error && why->code)
        return failure_prefix(why, "the export went to %s, because ", went_to);
    if (!error && !request->quiet)
        closing_words_written(stderr, format->noun, went_to);
    return error;
}

int export_run(const struct export_request *request, struct failure *why)
{
    CLEANUP(report_freep) struct report *report = NULL;
    const struct format *format = format_choose(request->format, request->output);
    bool streams = !request->output || save_is_stdout(request->output);
    int error = streams ? stream_check(format, why) : 0;
    if (!error)
        error = report_load(request->file, request->version, &report, why);
    if (error)
        return error;
    return streams ? stream_write(format, report, why) : file_write(format, request, report, why);
}
