/* How much of an interval a process was busy, from what the kernel charged its threads. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct busy_time {
    uint64_t ns;
    unsigned threads, ran; /* those that wanted a core, and those that had one */
};

static inline void busy_add(struct busy_time *busy, uint64_t ran_ns, uint64_t wanted_ns)
{
    busy->ns += ran_ns + wanted_ns;
    busy->threads += ran_ns + wanted_ns > 0;
    busy->ran += ran_ns > 0;
}

/*
 * One thread at a time leaves an exact rest: below zero where its account was read late, which the
 * next interval makes up for. One that ran overlaps with others that wanted to; of several that ran
 * the look decides.
 */
static inline int64_t busy_rest(const struct busy_time *busy, uint64_t wall_ns, bool met_busy)
{
    int64_t rest_ns = (int64_t)(wall_ns - busy->ns);
    if (busy->ran > 1)
        return met_busy ? 0 : (int64_t)wall_ns;
    return rest_ns > 0 || busy->threads <= 1 ? rest_ns : 0;
}
