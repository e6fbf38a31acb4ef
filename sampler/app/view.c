#include "sampler/app/view.h"

#include "output/cli/closing_words.h"
#include "output/cli/profile_table.h"
#include "output/cli/screen_width.h"
#include "output/cli/style.h"
#include "output/json/ranking_json.h"
#include "sampler/app/formats.h"
#include "sampler/app/page_file.h"
#include "sampler/app/report_load.h"
#include "sampler/app/save.h"
#include "sampler/base/cleanup.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

DEFINE_CLEANUP(struct report *, report_free)

static int page_make(const struct format *format, const struct report *report, char **ret_text,
                     size_t *ret_size)
{
    FILE *into = open_memstream(ret_text, ret_size);
    int error = into ? format_write(format, report, NULL, into) : -ENOMEM;
    return into && fclose(into) ? -ENOMEM : error;
}

static int page_save(const struct view_request *request, const struct report *report,
                     struct failure *why)
{
    const struct format *format = format_find(request->page);
    AUTO_FREE char *text = NULL;
    size_t size = 0;
    char path[SAVE_PATH_SIZE], went_to[SAVE_PATH_SIZE];
    int error = page_make(format, report, &text, &size);
    if (!error)
        error = page_file_name(request->file ? request->file : VIEW_USUAL_FILE, "", path);
    if (error)
        return failure_set(why, error, "the page could not be written: %s", strerror(-error));
    error = save_text(path, text, size, went_to, why);
    if (!error && format_has_assets(format))
        error = page_file_assets(went_to, why);
    if (!error && why->code)
        return failure_prefix(why, "the page went to %s, because ", went_to);
    if (!error && !request->quiet)
        closing_words_written(stderr, "page", went_to);
    return error;
}

static int table_print(const struct view_request *request, const struct report *report)
{
    const struct table_settings settings = {
        .width = screen_width(stdout),
        .coloured = style_wanted(stdout),
        .reduced = request->reduced,
        .cpu_percent_threshold = request->cpu_percent_threshold,
        .malloc_threshold = request->malloc_threshold,
        .selection = request->selection,
    };
    return profile_table_write(stdout, report, &settings);
}

/* Who closes a pipe has seen enough; nothing else goes wrong with one. */
static int output_check(struct failure *why)
{
    struct stat kind;
    bool is_pipe =
        fstat(fileno(stdout), &kind) == 0 && (S_ISFIFO(kind.st_mode) || S_ISSOCK(kind.st_mode));
    if ((fflush(stdout) || ferror(stdout)) && !is_pipe)
        return failure_set(why, -EIO, "standard output cannot be written: %s", strerror(errno));
    return 0;
}

int view_run(const struct view_request *request, struct failure *why)
{
    CLEANUP(report_freep) struct report *report = NULL;
    int error = report_load(request->file, request->version, &report, why);
    if (error)
        return error;
    if (request->page)
        return page_save(request, report, why);
    error = request->json ? ranking_json_write(report, &request->selection, stdout)
                          : table_print(request, report);
    if (error == -ENOMEM)
        return failure_set(why, error, "out of memory");
    return output_check(why);
}
