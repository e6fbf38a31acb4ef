#include "sampler/app/document.h"

#include <string.h>

static const struct {
    const char *name;
    void (*write)(FILE *out);
} completions[] = {
    { "bash", completion_write_bash },
    { "zsh", completion_write_zsh },
    { "fish", completion_write_fish },
};

int document_run(const char *name, const char *version, struct failure *why)
{
    bool known = name && strcmp(name, "man") == 0;
    if (known)
        man_page_write(stdout, version);
    for (size_t i = 0; name && i < sizeof completions / sizeof *completions; i++) {
        if (strcmp(name, completions[i].name) != 0)
            continue;
        completions[i].write(stdout);
        known = true;
    }
    if (!known)
        return failure_set(why, -EINVAL, "document which? man, bash, zsh or fish");
    if (fflush(stdout) || ferror(stdout))
        return failure_set(why, -EIO, "standard output cannot be written: %s", strerror(errno));
    return 0;
}
