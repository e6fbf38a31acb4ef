/* Text against a golden file of tests/golden; what differs is shown whole, so that a wanted change
 * can be taken over. */
#pragma once

#include "sampler/base/cleanup.h"

#include <string.h>

static inline void assert_golden(const char *name, const char *got)
{
    char path[1024];
    AUTO_FREE char *want = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "%.*s/../golden/%s", (int)(strrchr(__FILE__, '/') - __FILE__),
             __FILE__, name);
    AUTO_FCLOSE FILE *file = fopen(path, "re");
    if (!file || getdelim(&want, &size, '\0', file) < 0)
        fail_msg("%s cannot be read; it should be:\n%s", path, got);
    if (strcmp(got, want) != 0)
        fail_msg("not what %s says:\n%s", path, got);
}
