#include "sampler/app/settle.h"

#include "sampler/app/formats.h"
#include "sampler/app/run_memory.h"

#include <string.h>

static enum wish wish_of(bool wanted)
{
    return wanted ? WISH_YES : WISH_NO;
}

/* A table without a file goes to the terminal: there is no name for that. */
static int output_settle(struct options *options, const struct format *format)
{
    enum { NAME_SIZE = 64 };
    if (options->output || !format->write)
        return 0;
    char *name = arena_take(&options->arena, NAME_SIZE);
    if (!name)
        return -ENOMEM;
    format_usual_file(format, name, NAME_SIZE);
    options->output = name;
    return 0;
}

int options_settle(struct options *options)
{
    const struct format *format = format_choose(options->format, options->output);
    if (options->verb == VERB_ATTACH && !options->pids.count)
        options->verb = VERB_LAUNCH;
    options->memory = wish_of(run_memory_wanted(options));
    options->gpu = wish_of(options->gpu == WISH_YES); /* nobody looks at one by himself */
    options->off = wish_of(options_rest(options));
    options->on = wish_of(options->off == WISH_NO);
    options->format = format->name;
    return output_settle(options, format);
}
