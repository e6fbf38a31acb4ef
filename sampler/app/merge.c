#include "sampler/app/merge.h"

#include "output/cli/closing_words.h"
#include "output/json/profile_json.h"
#include "output/model/merge.h"
#include "sampler/app/report_load.h"
#include "sampler/app/save.h"
#include "sampler/base/cleanup.h"

#include <string.h>

DEFINE_CLEANUP(struct report *, report_free)

struct parts {
    struct report **items;
    size_t count;
};

static void parts_done(struct parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        report_free(parts->items[i]);
    free(parts->items);
}

/* Scalene's own has shares of a base that it does not tell, so that there is nothing to add up. */
static int part_check(const struct report *part, const char *file, struct failure *why)
{
    if (part->profiler_name)
        return 0;
    return failure_set(why, -ENOTSUP,
                       "%s was not written by scalene-attach: it has percentages without seconds, "
                       "which cannot be added up; profile with scalene-attach to merge",
                       file);
}

static int parts_load(struct parts *parts, const struct merge_request *request, struct failure *why)
{
    size_t count = 0;
    int error = 0;
    while (request->files[count])
        count++;
    parts->items = calloc(count, sizeof *parts->items);
    if (!parts->items)
        return failure_set(why, -ENOMEM, "out of memory");
    for (size_t i = 0; i < count && !error; i++) {
        error = report_load(request->files[i], request->version, &parts->items[i], why);
        parts->count += error == 0;
        if (!error)
            error = part_check(parts->items[i], request->files[i], why);
    }
    return error;
}

static int report_text_make(const struct report *report, char **ret_text, size_t *ret_size)
{
    FILE *into = open_memstream(ret_text, ret_size);
    int error = into ? profile_json_write(report, into) : -ENOMEM;
    return into && fclose(into) ? -ENOMEM : error;
}

static int merged_save(const struct merge_request *request, const struct report *merged,
                       struct failure *why)
{
    AUTO_FREE char *text = NULL;
    size_t size = 0;
    char path[SAVE_PATH_SIZE], went_to[SAVE_PATH_SIZE];
    int error = report_text_make(merged, &text, &size);
    if (!error)
        error = save_path(request->output, getpid(), path, sizeof path);
    if (error)
        return failure_set(why, error, "%s could not be written: %s", request->output,
                           strerror(-error));
    error = save_text(path, text, size, went_to, why);
    if (!error && why->code)
        return failure_prefix(why, "the merged profile went to %s, because ", went_to);
    if (!error && !request->quiet)
        closing_words_saved(stderr, went_to, VIEW_USUAL_FILE);
    return error;
}

int merge_run(const struct merge_request *request, struct failure *why)
{
    CLEANUP(parts_done) struct parts parts = { 0 };
    CLEANUP(report_freep) struct report *merged = NULL;
    int error = save_check(request->output, why);
    if (!error)
        error = parts_load(&parts, request, why);
    if (error)
        return error;
    if (report_merge((const struct report *const *)parts.items, parts.count, request->version,
                     &merged))
        return failure_set(why, -ENOMEM, "out of memory");
    return merged_save(request, merged, why);
}
