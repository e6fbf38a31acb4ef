/* Any text as a configuration: refused with a sentence that a terminal can take, or printed so that
 * it reads the same again. */
#include "sampler/app/config.h"
#include "sampler/base/cleanup.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static const struct option_set nothing_said;

static void must(bool condition)
{
    if (!condition)
        abort();
}

static char *print(const struct options *options, size_t *ret_size)
{
    char *text = NULL;
    FILE *into = open_memstream(&text, ret_size);
    must(into && config_write(options, into) == 0);
    must(fclose(into) == 0);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(options_done) struct options options = option_defaults, again = option_defaults;
    AUTO_FREE char *first = NULL, *second = NULL;
    struct failure why = { .text = "" };
    size_t first_size = 0, second_size = 0;
    options.verb = again.verb = VERB_RUN;
    int error = config_parse((const char *)data, size, "f.yaml", &nothing_said, &options, &why);
    must(error ? error == why.code && *why.text && !strpbrk(why.text, "\n\033") : !*why.text);
    if (error)
        return 0;
    first = print(&options, &first_size);
    must(config_parse(first, first_size, "f.yaml", &nothing_said, &again, &why) == 0);
    second = print(&again, &second_size);
    must(first_size == second_size && memcmp(first, second, first_size) == 0);
    return 0;
}
