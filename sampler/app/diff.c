#include "sampler/app/diff.h"

#include "output/cli/closing_words.h"
#include "output/cli/diff_table.h"
#include "output/cli/screen_width.h"
#include "output/cli/style.h"
#include "output/compare/gate.h"
#include "output/html/page.h"
#include "sampler/app/page_file.h"
#include "sampler/app/report_load.h"
#include "sampler/app/save.h"
#include "sampler/base/cleanup.h"

#include <string.h>

DEFINE_CLEANUP(struct report *, report_free)
DEFINE_CLEANUP(struct comparison *, comparison_free)

enum { GATES_MAX = 64, TOP_USUAL = 10 };

struct gates {
    char *texts;
    struct gate items[GATES_MAX];
    size_t count;
};

static void gates_done(struct gates *gates)
{
    free(gates->texts);
}

static int gates_parse(struct gates *gates, const char *limits, struct failure *why)
{
    char *rest = gates->texts = limits ? strdup(limits) : NULL;
    if (limits && !rest)
        return failure_set(why, -ENOMEM, "out of memory");
    while (rest) {
        const char *text = strsep(&rest, ",");
        if (gates->count == GATES_MAX)
            return failure_set(why, -EINVAL, "--fail-if is there more than %d times", GATES_MAX);
        int error = gate_parse(text, &gates->items[gates->count++], why);
        if (error)
            return error;
    }
    return 0;
}

/* How many were exceeded; each says so. */
static int gates_check(const struct gates *gates, const struct comparison *comparison,
                       struct failure *why)
{
    int exceeded = 0;
    for (size_t i = 0; i < gates->count; i++) {
        char sentence[GATE_SENTENCE_SIZE];
        int result = gate_check(&gates->items[i], comparison, sentence);
        if (result < 0)
            return failure_set(why, -EINVAL, "--fail-if %s", sentence);
        if (result > 0)
            fprintf(stderr, "scalene-attach: %s\n", sentence);
        exceeded += result;
    }
    return exceeded;
}

/* ---- what is shown ---- */

static int shown_write(const struct diff_request *request, const struct comparison *comparison,
                       FILE *into)
{
    const struct diff_json_settings json = { request->version, request->old_file, request->new_file,
                                             request->top > 0 ? (size_t)request->top : 0 };
    const struct diff_settings settings = {
        .width = screen_width(into == stdout ? stdout : stderr),
        .coloured = into == stdout && style_wanted(stdout),
        .top = request->top < 0 ? TOP_USUAL : (size_t)request->top,
        .old_name = request->old_file,
        .new_name = request->new_file,
    };
    if (request->html)
        return page_write_diff(comparison, &json, PAGE_INLINE, into);
    return request->json ? diff_json_write(comparison, &json, into)
                         : diff_table_write(into, comparison, &settings);
}

static int stream_write(const struct diff_request *request, const struct comparison *comparison,
                        struct failure *why)
{
    int error = shown_write(request, comparison, stdout);
    if (error == -ENOMEM)
        return failure_set(why, error, "out of memory");
    if (fflush(stdout) || ferror(stdout))
        return failure_set(why, -EIO, "standard output cannot be written: %s", strerror(errno));
    return 0;
}

static int file_write(const struct diff_request *request, const struct comparison *comparison,
                      const char *path, struct failure *why)
{
    AUTO_FREE char *text = NULL;
    size_t size = 0;
    char went_to[SAVE_PATH_SIZE];
    FILE *into = open_memstream(&text, &size);
    int error = into ? shown_write(request, comparison, into) : -ENOMEM;
    if (into && fclose(into))
        error = -ENOMEM;
    if (error)
        return failure_set(why, error, "out of memory");
    error = save_text(path, text, size, went_to, why);
    if (!error && why->code)
        return failure_prefix(why, "the comparison went to %s, because ", went_to);
    if (!error && !request->quiet)
        closing_words_written(stderr, "comparison", went_to);
    return error;
}

static int comparison_show(const struct diff_request *request, const struct comparison *comparison,
                           struct failure *why)
{
    char path[SAVE_PATH_SIZE];
    if (request->output ? save_is_stdout(request->output) : !request->html)
        return stream_write(request, comparison, why);
    int error = request->output ? save_path(request->output, getpid(), path, sizeof path)
                                : page_file_name(request->new_file, "-diff", path);
    if (error)
        return failure_set(why, error, "the comparison could not be written: %s", strerror(-error));
    return file_write(request, comparison, path, why);
}

int diff_run(const struct diff_request *request, int *ret_status, struct failure *why)
{
    CLEANUP(gates_done) struct gates gates = { 0 };
    CLEANUP(report_freep) struct report *old_report = NULL, *new_report = NULL;
    CLEANUP(comparison_freep) struct comparison *comparison = NULL;
    int error = gates_parse(&gates, request->limits, why);
    if (!error)
        error = report_load(request->old_file, request->version, &old_report, why);
    if (!error)
        error = report_load(request->new_file, request->version, &new_report, why);
    if (error)
        return error;
    if (comparison_new(old_report, new_report, &comparison))
        return failure_set(why, -ENOMEM, "out of memory");
    error = comparison_show(request, comparison, why);
    if (error)
        return error;
    int exceeded = gates_check(&gates, comparison, why);
    *ret_status = exceeded > 0;
    return exceeded < 0 ? exceeded : 0;
}
