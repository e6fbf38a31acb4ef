/*
 * Text against a golden file of tests/golden; what differs is kept in the folder the test runs in,
 * so that a wanted change can be looked at and taken over.
 */
#pragma once

#include "sampler/base/cleanup.h"

#include <string.h>

/* Its name, the golden file's without folders. */
static inline const char *differing_keep(const char *name, const char *got)
{
    const char *slash = strrchr(name, '/');
    const char *kept = slash ? slash + 1 : name;
    AUTO_FCLOSE FILE *file = fopen(kept, "we");
    return file && fputs(got, file) >= 0 ? kept : "(nowhere)";
}

static inline void assert_golden(const char *name, const char *got)
{
    char path[1024];
    AUTO_FREE char *want = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "%.*s/../golden/%s", (int)(strrchr(__FILE__, '/') - __FILE__),
             __FILE__, name);
    AUTO_FCLOSE FILE *file = fopen(path, "re");
    if (!file || getdelim(&want, &size, '\0', file) < 0)
        fail_msg("%s cannot be read; it should be %s:\n%s", path, differing_keep(name, got), got);
    if (strcmp(got, want) != 0)
        fail_msg("not what %s says, but %s:\n%s", path, differing_keep(name, got), got);
}
