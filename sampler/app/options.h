/* What the words of a command line, and the configuration that they name, come to. */
#pragma once

#include "sampler/base/arena.h"
#include "sampler/base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum verb {
    VERB_NONE,
#define VERB(name, ...) VERB_##name,
#include "sampler/app/verbs.def"
#undef VERB
    VERB_COUNT
};

/* The verbs that steer a running profiler. */
static inline bool verb_steers(enum verb verb)
{
    return verb >= VERB_ON && verb <= VERB_STATUS;
}

/* Those that run a profiling. */
static inline bool verb_profiles(enum verb verb)
{
    return verb == VERB_ATTACH || verb == VERB_LAUNCH || verb == VERB_RUN;
}

/* Where neither yes nor no was said, what else was said decides. */
enum wish { WISH_NONE, WISH_NO, WISH_YES };

enum { PIDS_MAX = 64 };

struct pid_list {
    pid_t items[PIDS_MAX];
    size_t count;
};

struct options {
    enum verb verb;
    /* The command of a launch, the program of run with its arguments, the files of view, diff and
     * so on; ends with NULL. NULL: none. */
    char *const *words;
    struct pid_list pids;
    const char *output, *format, *profile_only, *profile_exclude, *program_path, *python, *config;
    const char *record, *replay, *fail_if, *sort, *file, *function;
    const char *set_aside; /* options of a configuration that have no effect here, or NULL */
    double duration_s, rate_hz, max_overhead, cpu_percent_threshold, profile_interval_s;
    bool nonblocking, native, native_stacks, stacks, async, subprocesses, profile_all,
        system_libraries;
    int64_t allocation_window, malloc_threshold, top, view_top;
    bool cpu_only, leak_detector, disable_jit;
    enum wish memory, gpu, on, off;
    bool asks_profiler; /* --on or --off stands on the command line itself */
    bool virtual_time, quiet, cli, reduced, html, standalone, json, help, help_advanced, version,
        print_config;
    unsigned find;      /* bit per enum python_found_by; 0: any */
    struct arena arena; /* what the words are not: borrowed from by all of the above */
};

/* 0, or -EINVAL with one sentence that names the nearest known word. Either way `ret` wants
 * options_done. */
int options_parse(int argc, char *const *argv, struct options *ret, struct failure *why);
void options_done(struct options *options);

/* Whether a run begins without sampling. */
static inline bool options_rest(const struct options *options)
{
    return options->off == WISH_YES || options->on == WISH_NO;
}
