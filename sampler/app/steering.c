#include "sampler/app/steering.h"

#include "sampler/app/control.h"

#include <stdio.h>
#include <string.h>

static enum control_verb verb_of(const struct options *options)
{
    switch (options->verb) {
    case VERB_ON:
        return CONTROL_ON;
    case VERB_OFF:
        return CONTROL_OFF;
    case VERB_FLUSH:
        return CONTROL_FLUSH;
    case VERB_STOP:
        return CONTROL_STOP;
    case VERB_STATUS:
        return options->json ? CONTROL_STATUS_JSON : CONTROL_STATUS;
    default:
        return options_rest(options) ? CONTROL_OFF : CONTROL_ON;
    }
}

/* What was asked for goes to standard output, what was done is only said. */
static int answer_print(const struct options *options, const char *answer, struct failure *why)
{
    if (options->verb != VERB_STATUS) {
        if (!options->quiet)
            fprintf(stderr, "scalene-attach: %s\n", answer);
        return 0;
    }
    fputs(answer, stdout);
    if (fflush(stdout) || ferror(stdout))
        return failure_set(why, -EIO, "standard output cannot be written: %s", strerror(errno));
    return 0;
}

int steering_run(const struct options *options, struct failure *why)
{
    char answer[CONTROL_ANSWER_SIZE];
    int error = control_ask(options->pids.items[0], verb_of(options), answer, sizeof answer, why);
    return error ? error : answer_print(options, answer, why);
}

bool steering_is_meant(const struct options *options)
{
    return options->verb == VERB_ATTACH && options->asks_profiler && options->pids.count == 1;
}
