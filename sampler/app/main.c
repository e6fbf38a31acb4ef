/* The composition root: words in, one verb run, one sentence when it fails, and the exit status. */
#include "sampler/app/dump.h"
#include "sampler/app/profile_run.h"
#include "sampler/app/steering.h"
#include "sampler/app/view.h"

#include <stdio.h>
#include <string.h>

enum exit_status { EXIT_FINE = 0, EXIT_USAGE = 2, EXIT_OURS = 125 };

static int usage_error(const char *text)
{
    fprintf(stderr, "scalene-attach: %s\n", text);
    return EXIT_USAGE;
}

/* Why the words do not make a whole; NULL when they do. */
static const char *words_missing(const struct options *options)
{
    bool takes_one = options->verb == VERB_DUMP || verb_steers(options->verb);
    if ((takes_one || options->verb == VERB_ATTACH) && !options->pids.count)
        return "which process? Name it with --pid N";
    if (takes_one && options->pids.count > 1)
        return "name one process only: this takes a single --pid";
    if (options->on && options->off)
        return "--on and --off exclude each other";
    if ((options->verb == VERB_RUN || options->verb == VERB_LAUNCH) &&
        (!options->words || !options->words[0]))
        return "which program? Its name comes behind the options";
    if (options->format && strcmp(options->format, "json") && strcmp(options->format, "cli"))
        return "--format takes json or cli";
    return NULL;
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

static int verb_run(const struct options *options, int *ret_status, struct failure *why)
{
    const struct view_request view = {
        .file = options->words ? options->words[0] : NULL,
        .version = SCALENE_ATTACH_VERSION,
        .reduced = options->reduced,
        .cpu_percent_threshold = 1,
        .malloc_threshold = 100,
    };
    int error = 0;
    if (options->verb == VERB_DUMP)
        error = dump_run(options, why);
    else if (options->verb == VERB_VIEW)
        error = view_run(&view, why);
    else if (verb_steers(options->verb))
        error = steering_run(options, why);
    else
        return profiler_run(options, ret_status, why);
    *ret_status = error ? EXIT_OURS : EXIT_FINE;
    return error;
}

int main(int argc, char **argv)
{
    struct options options;
    struct failure why = { .text = "" };
    int status = EXIT_OURS;
    if (options_parse(argc, argv, &options, &why))
        return usage_error(why.text);
    if (options.help || options.help_advanced) {
        options_write_help(stdout, options.help_advanced);
        return EXIT_FINE;
    }
    if (options.version) {
        puts("scalene-attach " SCALENE_ATTACH_VERSION);
        return EXIT_FINE;
    }
    if (options.verb == VERB_NONE) {
        options_write_help(stderr, false);
        return EXIT_USAGE;
    }
    if (words_missing(&options))
        return usage_error(words_missing(&options));
    if (verb_run(&options, &status, &why) && *why.text)
        fprintf(stderr, "scalene-attach: %s\n", why.text);
    return status;
}
