/*
 * Profiles of several runs, ranks or hosts as one. Sums are exact, shares are anew of the joint
 * base; margins of error add up as those of independent samples do. Times count from each run's own
 * start, and of memory the peak is that of the part which had the largest: its lines' share at the
 * peak is theirs there. Where the parts have different versions of a file, or have it below
 * different folders, the newest text and path are kept.
 */
#pragma once

#include "output/model/report.h"

/* `version` is ours. The result owns all that is in it. 0 or -ENOMEM. */
int report_merge(const struct report *const *parts, size_t count, const char *version,
                 struct report **ret);

/* A pid that two parts have is told apart by multiples of this: no system has as many. */
#define MERGE_PID_STEP INT64_C(10000000)
