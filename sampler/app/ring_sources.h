/*
 * The rings of a run, and whose they are: one for all that is launched, or one for each process
 * that the shim was brought into. What is read from them goes into the profile. One whose process
 * has ended, with all that have it from that one, is closed; what it told and cost stays in the
 * sums.
 */
#pragma once

#include "sampler/app/run_state.h"
#include "sampler/loop/ring_reader.h"
#include "sampler/target/stillness.h"

struct ring_source;

/* Of all rings since the run began. */
struct ring_sums {
    struct memory_loss_event loss;
    struct stood stood; /* threads of targets, while the shim was brought, armed and disarmed */
    uint32_t gaps;      /* bits of enum ring_gap */
    bool is_behind;     /* what a program has loaded meanwhile is not hooked */
};

struct ring_sources {
    struct run *run; /* borrowed */
    bool counts;     /* what is allocated; else only who tells of himself */
    struct ring_source **list;
    size_t count, capacity;
    uint64_t sweep_ns; /* when those that have ended are looked for next */
    struct ring_sums closed;
};

/* None is armed yet. */
int ring_sources_add(struct ring_sources *sources, const struct ring_settings *settings,
                     struct failure *why);

/* The process gets the shim and a ring of its own: injection_open() says what may stand in the way.
 */
int ring_sources_attach(struct ring_sources *sources, pid_t pid,
                        const struct ring_settings *settings, unsigned patience_ms,
                        struct failure *why);

/* The memory file of the first. */
int ring_sources_fd(const struct ring_sources *sources);

void ring_sources_arm(struct ring_sources *sources, bool armed);
bool ring_sources_have_news(const struct ring_sources *sources);

/* The number of records, or -ENOMEM. */
long ring_sources_drain(struct ring_sources *sources, uint64_t now_ns);

/* What was loaded meanwhile is armed, too, and what has ended is closed. 0 or -ENOMEM. */
int ring_sources_follow(struct ring_sources *sources, uint64_t now_ns);

/* A process ended. */
void ring_sources_forget(struct ring_sources *sources, pid_t pid);

/* What cannot be taken back is said at once, and noted: a thread may have been left in our call. 0
 * or -ENOMEM. */
int ring_sources_disarm(struct ring_sources *sources);

void ring_sources_sum(const struct ring_sources *sources, struct ring_sums *ret);

/* Closes all. */
void ring_sources_done(struct ring_sources *sources);
