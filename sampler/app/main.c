/* The composition root: words in, one verb run, one sentence when it fails, and the exit status. */
#include "output/cli/screen_text.h"
#include "sampler/app/config.h"
#include "sampler/app/diff.h"
#include "sampler/app/document.h"
#include "sampler/app/dump.h"
#include "sampler/app/export.h"
#include "sampler/app/formats.h"
#include "sampler/app/merge.h"
#include "sampler/app/profile_run.h"
#include "sampler/app/save.h"
#include "sampler/app/settle.h"
#include "sampler/app/steering.h"
#include "sampler/app/view.h"
#include "sampler/base/cleanup.h"

#include <stdio.h>
#include <string.h>

enum exit_status { EXIT_FINE = 0, EXIT_USAGE = 2, EXIT_OURS = 125 };

/* It may hold names that somebody else has given. */
static void sentence_write(const char *text)
{
    char shown[4 * sizeof((struct failure *)NULL)->text];
    screen_text(text, shown, sizeof shown);
    fprintf(stderr, "scalene-attach: %s\n", shown);
}

static int usage_error(const char *text)
{
    sentence_write(text);
    return EXIT_USAGE;
}

/* Why it is not known which format is meant; NULL when it is. */
static const char *format_missing(const struct options *options)
{
    static char text[256];
    char names[192];
    bool is_told = options->format || (options->output && format_of_path(options->output));
    if (options->verb != VERB_EXPORT || is_told)
        return NULL;
    format_names(names, sizeof names);
    snprintf(text, sizeof text, "which format? Name it with --format: %s", names);
    return text;
}

static size_t words_count(const struct options *options)
{
    size_t count = 0;
    while (options->words && options->words[count])
        count++;
    return count;
}

/* Why these are not the files that the verb takes; NULL when they are. */
static const char *files_missing(const struct options *options)
{
    size_t count = words_count(options);
    if ((options->verb == VERB_VIEW || options->verb == VERB_EXPORT) && count > 1)
        return "name one profile only: this takes a single one";
    if (options->verb == VERB_DIFF && count != 2)
        return "diff takes two profiles, the old one and the new one: diff OLD NEW";
    if (options->verb == VERB_MERGE && count < 3)
        return "merge takes the output's name, then two profiles or more: merge OUT A B";
    if (options->verb == VERB_MERGE && save_is_stdout(options->words[0]))
        return "merge writes a file, not standard output: merge OUT A B";
    return NULL;
}

/* Why the words do not make a whole; NULL when they do. */
static const char *words_missing(const struct options *options)
{
    bool takes_one = options->verb == VERB_DUMP || verb_steers(options->verb);
    if ((takes_one || options->verb == VERB_ATTACH) && !options->pids.count)
        return "which process? Name it with --pid N";
    if (takes_one && options->pids.count > 1)
        return "name one process only: this takes a single --pid";
    if (verb_profiles(options->verb) && save_is_stdout(options->output))
        return "standard output is the program's, so the profile wants a file: name one with "
               "--output";
    if (options->on != WISH_NONE && options->on == options->off)
        return "--on and --off exclude each other";
    if ((options->verb == VERB_RUN || options->verb == VERB_LAUNCH) &&
        (!options->words || !options->words[0]))
        return "which program? Its name comes behind the options";
    return files_missing(options) ?: format_missing(options);
}

/* Whether to steer or to begin is not told apart by --on and --off, but by who profiles it now. */
static int profiler_run(const struct options *options, int *ret_status, struct failure *why)
{
    if (steering_is_meant(options)) {
        int error = steering_run(options, why);
        if (error != -ENOENT) {
            *ret_status = error ? EXIT_OURS : EXIT_FINE;
            return error;
        }
        *why = (struct failure){ .text = "" };
    }
    return profile_run(options, SCALENE_ATTACH_VERSION, ret_status, why);
}

static int diff_begin(const struct options *options, int *ret_status, struct failure *why)
{
    const struct diff_request request = {
        .old_file = options->words[0],
        .new_file = options->words[1],
        .version = SCALENE_ATTACH_VERSION,
        .output = options->output,
        .limits = options->fail_if,
        .json = options->json,
        .html = options->html,
        .quiet = options->quiet,
        .top = options->top,
    };
    int error = diff_run(&request, ret_status, why);
    if (error)
        *ret_status = error == -EINVAL ? EXIT_USAGE : EXIT_OURS;
    return error;
}

static int merge_begin(const struct options *options, struct failure *why)
{
    const struct merge_request request = {
        .output = options->words[0],
        .files = options->words + 1,
        .version = SCALENE_ATTACH_VERSION,
        .quiet = options->quiet,
    };
    return merge_run(&request, why);
}

static int verb_run(const struct options *options, int *ret_status, struct failure *why)
{
    const struct view_request view = {
        .file = options->words ? options->words[0] : NULL,
        .version = SCALENE_ATTACH_VERSION,
        .reduced = options->reduced,
        .page = options->html         ? "html"
                : options->standalone ? "standalone"
                                      : NULL,
        .quiet = options->quiet,
        .json = options->json,
        .cpu_percent_threshold = options->cpu_percent_threshold,
        .malloc_threshold = options->malloc_threshold,
        .selection = { .file = options->file,
                       .function = options->function,
                       .sort = options->sort ? column_find_named(options->sort) : NULL,
                       .top = (size_t)options->view_top },
    };
    const struct export_request export = {
        .file = options->words ? options->words[0] : NULL,
        .version = SCALENE_ATTACH_VERSION,
        .format = options->format,
        .output = options->output,
        .quiet = options->quiet,
    };
    int error = 0;
    if (options->verb == VERB_DIFF)
        return diff_begin(options, ret_status, why);
    if (options->verb == VERB_MERGE)
        error = merge_begin(options, why);
    else if (options->verb == VERB_DUMP)
        error = dump_run(options, why);
    else if (options->verb == VERB_VIEW)
        error = view_run(&view, why);
    else if (options->verb == VERB_EXPORT)
        error = export_run(&export, why);
    else if (options->verb == VERB_DOCUMENT)
        error =
            document_run(options->words ? options->words[0] : NULL, SCALENE_ATTACH_VERSION, why);
    else if (verb_steers(options->verb))
        error = steering_run(options, why);
    else
        return profiler_run(options, ret_status, why);
    *ret_status = error ? EXIT_OURS : EXIT_FINE;
    return error;
}

static int config_print(struct options *options)
{
    int error = options_settle(options);
    return error || config_write(options, stdout) ? EXIT_OURS : EXIT_FINE;
}

/* What is answered without any work. Whether it was. */
static bool question_answer(struct options *options, int *ret_status)
{
    enum verb named = verb_rows[options->verb].word ? options->verb : VERB_NONE;
    *ret_status = EXIT_FINE;
    if (options->help || options->help_advanced)
        help_write(stdout, named, options->help_advanced);
    else if (options->version)
        puts("scalene-attach " SCALENE_ATTACH_VERSION);
    else if (options->print_config)
        *ret_status = config_print(options);
    else if (options->verb == VERB_NONE)
        help_write(stderr, VERB_NONE, false);
    else
        return false;
    if (options->verb == VERB_NONE)
        *ret_status = EXIT_USAGE;
    return true;
}

int main(int argc, char **argv)
{
    CLEANUP(options_done) struct options options;
    struct failure why = { .text = "" };
    int status = EXIT_OURS;
    if (options_parse(argc, argv, &options, &why))
        return usage_error(why.text);
    if (question_answer(&options, &status))
        return status;
    if (words_missing(&options))
        return usage_error(words_missing(&options));
    if (verb_run(&options, &status, &why) && *why.text)
        sentence_write(why.text);
    return status;
}
