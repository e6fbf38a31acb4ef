/*
 * Which lines leak, by what survives. A line's life from its first allocation on is parted into
 * epochs; of each it is known how many of the sampled blocks that were allocated in it are live. A
 * line leaks when each quarter of the time in which it allocated has left blocks behind, so that
 * its memory goes on growing: rebinding one object leaves only the last one, a table loaded at the
 * start stops growing, a full cache lets the oldest go. What an interpreter frees as it ends was
 * not freed by the program: a leak that was there an eighth of the run ago counts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LEAK_EPOCHS = 64 };

/* Reported from here on, as Scalene does. By the rule of succession: 18 blocks survived, none did
 * not. */
#define LEAK_LIKELIHOOD 0.95

struct leak {
    double likelihood, live_bytes, bytes_per_s;
};

struct survival {               /* all zero: no allocation yet */
    uint64_t first_ns, last_ns; /* allocations */
    unsigned shift;             /* an epoch is 1 << shift ns */
    size_t epoch;               /* the present one */
    bool begun;
    uint32_t alive[LEAK_EPOCHS];     /* by when they were allocated */
    double floor_bytes[LEAK_EPOCHS]; /* the least that was live in the epoch */
    struct leak held;                /* the last one that was found, */
    uint64_t held_ns;                /* and when; 0: none was */
};

/* A block is allocated; `live_bytes` before that. */
void survival_add(struct survival *survival, uint64_t time_ns, double live_bytes);

/* One that was allocated at `born_ns` goes, or a part of it, which leaves it alive; `live_bytes`
 * before and after. */
void survival_remove(struct survival *survival, uint64_t born_ns, uint64_t time_ns,
                     double live_bytes, double left_bytes, bool whole);

/* The most that stayed for four epochs, which are between 1/16 and 1/8 of the line's life. */
double survival_growth(const struct survival *survival, uint64_t now_ns, double live_bytes);

/* Does the line leak, as things stand at the end of what was seen? */
bool survival_leaks(const struct survival *survival, uint64_t now_ns, double live_bytes,
                    struct leak *ret);
