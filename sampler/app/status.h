/* What the verb `status` tells of a running profiler: for people, and as JSON. */
#pragma once

#include "output/model/profile.h"

#include <stdio.h>

struct status {
    pid_t target, profiler;
    const char *version; /* the profiler's */
    const char *mode;    /* "attach", "launch" */
    bool is_on;
    const char *output; /* where the profile goes; NULL: to a terminal */
    size_t processes;   /* alive */
    uint64_t rss_bytes; /* of all of them */
    const struct sampling_event *sampling;
    struct profile_glance glance;
};

void status_write_text(FILE *into, const struct status *status);
void status_write_json(FILE *into, const struct status *status);
