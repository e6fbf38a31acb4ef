/* The sign of life while a profile is taken: one line, drawn over itself. Asks no clock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct heartbeat {
    bool is_off; /* sampling rests: then there is no rate */
    double elapsed_s;
    double rate_hz;        /* samples a second and thread */
    double profiler_cpu_s; /* our own */
    uint64_t samples, dropped;
    uint64_t rss_bytes;       /* of the target; 0: unknown */
    const char *hottest_file; /* NULL: none yet */
    int hottest_line;
    double hottest_percent;
};

/* In at most so many columns, without a line's end; returns the columns used. */
size_t heartbeat_text(const struct heartbeat *heartbeat, size_t columns, char *into, size_t size);

/* Draws over what was drawn before, leaving the last column free: some terminals wrap there. */
void heartbeat_draw(FILE *out, const struct heartbeat *heartbeat, size_t columns);

/* Leaves the line as if nothing had been drawn. */
void heartbeat_erase(FILE *out);
