/*
 * When to look: exponential gaps from an absolute clock, so that no rhythm of the program can hide.
 * Lateness is skipped, never caught up in bursts. Pure: the caller hands in the time.
 */
#pragma once

#include <stdint.h>

struct tick_clock {
    double fastest_ns; /* mean gap asked for */
    double mean_ns;    /* mean gap in force: longer when a budget is short */
    uint64_t next_ns;
    uint64_t missed;         /* looks that were skipped because we were late */
    uint64_t looks, gaps_ns; /* that were planned, and the sum of the gaps between them */
    uint64_t random;
    /* the budgets: what a look costs, against what it may */
    double pause_share, cpu_share; /* largest shares of the time, 0.01 for 1 % */
    double pause_ns, cpu_ns;       /* smoothed cost of one look */
    uint64_t start_ns;
    double spent_ns; /* on pauses, since then */
};

/* The shares are more than 0. That of pauses holds for those of now, and for all since `now_ns`. */
void tick_clock_init(struct tick_clock *clock, double rate_hz, double pause_share, double cpu_share,
                     uint64_t seed, uint64_t now_ns);

/* Plans the next look after `now_ns` and returns its time. */
uint64_t tick_clock_next(struct tick_clock *clock, uint64_t now_ns);

/* What the last look cost: the time that threads stood still, of each look; and our own CPU time,
 * of as many as are weighed. */
void tick_clock_charge(struct tick_clock *clock, uint64_t pause_ns);
void tick_clock_weigh(struct tick_clock *clock, uint64_t cpu_ns);

/* Looks a second, as planned at present, and as they were on the average. */
double tick_clock_rate(const struct tick_clock *clock);
double tick_clock_mean_rate(const struct tick_clock *clock);
