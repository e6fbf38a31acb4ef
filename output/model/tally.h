/* What adds up on one line or in one function, in the units in which it comes: nanoseconds and
 * counts. */
#pragma once

#include "output/model/line_stats.h"
#include "output/model/memory_tally.h"
#include "sampler/base/arena.h"
#include "sampler/base/event.h"

struct native_tally {
    const char *symbol, *module; /* interned by the profile: equal texts, equal pointers */
    uint64_t ns;
};

enum { MOMENTS_MAX = 500, NATIVE_TALLIES = 64, NATIVE_TOP = 5 };

struct tally {
    uint32_t file;    /* number of the profile's file */
    int line;         /* of a function: its first line */
    const char *name; /* of a function, else NULL */
    uint64_t python_ns, native_ns, kernel_ns, idle_ns, cumulative_ns;
    uint64_t wait_ns[WAIT_KINDS];
    uint64_t samples;
    uint64_t stamp;      /* of the last stack that was added to cumulative_ns */
    double squares;      /* sum of the squared times, in seconds, for the margin of error */
    double utilization;  /* sum of time times the share of the cores that was busy */
    uint64_t *processes; /* a bit for each */
    size_t process_words;
    uint64_t gone_processes; /* that have no number any more */
    struct native_tally *natives;
    size_t native_count;
    double *moments; /* seconds since profiling began; a fair sample of all that came */
    uint64_t moment_count;
    struct memory_tally *memory; /* NULL: it allocated nothing */
};

/* One sample's worth of time, or a part of an idle interval. */
struct charge {
    uint64_t python_ns, native_ns, kernel_ns, idle_ns, wait_ns;
    unsigned wait_kind; /* meaningful with wait_ns */
    uint64_t samples;
    double utilization; /* of all cores in that interval, 0..1 */
    uint32_t process;   /* number of the process */
};

/* Time that is part of the base. */
static inline uint64_t charge_base_ns(const struct charge *charge)
{
    return charge->python_ns + charge->native_ns + charge->kernel_ns + charge->idle_ns;
}

/* 0 or -ENOMEM */
int tally_add(struct tally *tally, const struct charge *charge);
int tally_add_native(struct tally *tally, const char *symbol, const char *module, uint64_t ns);
int tally_add_process(struct tally *tally, uint32_t process); /* which tally_add does, too */
/* Processes got new numbers, `moved[old]`, never higher ones, or are gone: UINT32_MAX. */
void tally_move_processes(struct tally *tally, const uint32_t *moved, size_t count);
int tally_add_moment(struct tally *tally, double seconds);
uint64_t tally_moments_dropped(const struct tally *tally);
void tally_done(struct tally *tally);

static inline uint64_t tally_base_ns(const struct tally *tally)
{
    return tally->python_ns + tally->native_ns + tally->kernel_ns + tally->idle_ns;
}

/* The base of the percentages, and what the margins of error need of all samples together. */
struct tally_base {
    double seconds, squares, start_time_perf;
    struct memory_base memory;
};

/* Fills in everything but text and regions; lists come from the arena. 0 or -ENOMEM. */
int tally_finish(const struct tally *tally, const struct tally_base *base, struct arena *arena,
                 struct line_stats *ret);
