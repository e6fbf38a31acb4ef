/* The composition root: words in, one verb run, one sentence when it fails, and the exit status. */
#include "sampler/app/dump.h"

#include <stdio.h>

enum exit_status { EXIT_FINE = 0, EXIT_USAGE = 2, EXIT_OURS = 125 };

static int usage_error(const char *text)
{
    fprintf(stderr, "scalene-attach: %s\n", text);
    return EXIT_USAGE;
}

static int verb_run(const struct options *options)
{
    struct failure why = { .text = "" };
    if (options->verb == VERB_NONE) {
        options_write_help(stderr, false);
        return EXIT_USAGE;
    }
    if (!options->pid)
        return usage_error("dump needs to know which process: --pid N");
    if (dump_run(options, &why) == 0)
        return EXIT_FINE;
    fprintf(stderr, "scalene-attach: %s\n", why.text);
    return EXIT_OURS;
}

int main(int argc, char **argv)
{
    struct options options;
    struct failure why = { .text = "" };
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
    return verb_run(&options);
}
