/* The composition root: words in, one verb run, one sentence when it fails, and the exit status. */
#include "sampler/app/dump.h"
#include "sampler/app/profile_run.h"
#include "sampler/app/view.h"

#include <stdio.h>

enum exit_status { EXIT_FINE = 0, EXIT_USAGE = 2, EXIT_OURS = 125 };

static int usage_error(const char *text)
{
    fprintf(stderr, "scalene-attach: %s\n", text);
    return EXIT_USAGE;
}

/* Why the words do not make a whole; NULL when they do. */
static const char *words_missing(const struct options *options)
{
    bool needs_pid = options->verb == VERB_DUMP || options->verb == VERB_ATTACH;
    if (needs_pid && !options->pids.count)
        return "which process? Name it with --pid N";
    if (options->verb == VERB_DUMP && options->pids.count > 1)
        return "dump takes one --pid";
    if ((options->verb == VERB_RUN || options->verb == VERB_LAUNCH) &&
        (!options->words || !options->words[0]))
        return "which program? Its name comes behind the options";
    return NULL;
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
    switch (options->verb) {
    case VERB_DUMP:
        return dump_run(options, why);
    case VERB_VIEW:
        return view_run(&view, why);
    default:
        return profile_run(options, SCALENE_ATTACH_VERSION, ret_status, why);
    }
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
    int error = verb_run(&options, &status, &why);
    if (!error)
        return options.verb == VERB_DUMP || options.verb == VERB_VIEW ? EXIT_FINE : status;
    if (*why.text)
        fprintf(stderr, "scalene-attach: %s\n", why.text);
    return status;
}
