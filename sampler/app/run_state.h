/* What a profiling run holds: for profile_run.c, which drives it, and the run_*.c, which each do
 * one thing for it. */
#pragma once

#include "sampler/app/control.h"
#include "sampler/app/members.h"
#include "sampler/app/options.h"
#include "sampler/app/program.h"
#include "sampler/app/recording.h"
#include "sampler/app/save.h"
#include "sampler/app/sources.h"
#include "sampler/app/word_list.h"
#include "sampler/base/clock_read.h"
#include "sampler/loop/clock.h"
#include "sampler/target/family_watch.h"
#include "sampler/target/launch.h"
#include "symbols/object_symbols.h"

/* A target by whose number the run can be steered. */
struct steered {
    pid_t pid;
    struct control *control;
};

struct run {
    const struct options *options;
    const char *version; /* ours */
    struct profile_settings settings;
    struct word_list only, exclude;
    struct program program;
    int rank;                       /* of whom the output is named after */
    char **args;                    /* of the program, as it sees them */
    char *more_paths[PIDS_MAX + 1]; /* of the other programs */
    size_t more_count;
    struct sources *sources;
    struct profile *profile;
    struct recording *recording; /* NULL: nobody wants one */
    struct members *members;
    struct object_list objects; /* lent to the members */
    struct core_holder *holder; /* lent to the members */
    struct run_memory *memory;  /* NULL: nobody wants to know */
    struct family_watch *family;
    struct signals signals;
    struct launch *launch;
    struct launch_end end;
    struct tick_clock clock;
    struct failure refusal; /* the last one while opening members */
    struct steered steered[PIDS_MAX];
    size_t steered_count;
    struct control_request stop; /* answered when the profile is written */
    pid_t stop_target;           /* 0: nobody said stop */
    uint64_t start_ns, heartbeat_ns, polled_ns;
    uint64_t weigh_ns;        /* when our own CPU time for a look is asked for next */
    uint64_t end_ns, save_ns; /* of --duration as things stand, the next of --profile-interval */
    bool finished, program_ended, shows_heartbeat;
    bool family_calls, signals_call, control_calls; /* the last wait ended because of them */
    bool is_off, was_off, was_on;                   /* sampling: now, and at any time */
    char below[256];                 /* Pythons that are not followed, where there is no other */
    uint64_t below_ns, below_gap_ns; /* when they are looked for next */
    uint64_t switched_ns,
        on_ns;          /* when that changed last, and how long it had been on until then */
    size_t ended_count; /* members that ended since such were let go last */
    bool told_trouble;  /* of an interim writing: once is enough */
};

static inline double seconds(uint64_t ns)
{
    return 1e-9 * (double)ns;
}

/* What is longer than the clock can count is for ever. */
static inline uint64_t nanoseconds(double seconds)
{
    return seconds < 1e9 ? (uint64_t)(1e9 * seconds) : (uint64_t)1e18;
}
