/* The command line: parsed by one table, which also writes the help. */
#pragma once

#include "sampler/base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* ATTACH and LAUNCH have no word of their own: --pid or a command tell. */
enum verb {
    VERB_NONE,
    VERB_ATTACH,
    VERB_LAUNCH,
    VERB_RUN,
    VERB_VIEW,
    VERB_DUMP,
    VERB_ON,
    VERB_OFF,
    VERB_FLUSH,
    VERB_STOP,
    VERB_STATUS,
    VERB_COUNT
};

/* The verbs that steer a running profiler. */
static inline bool verb_steers(enum verb verb)
{
    return verb >= VERB_ON && verb <= VERB_STATUS;
}

enum { PIDS_MAX = 64 };

struct pid_list {
    pid_t items[PIDS_MAX];
    size_t count;
};

typedef bool option_FLAG;
typedef bool option_SWITCH;
typedef double option_NUMBER;
typedef int64_t option_COUNT;
typedef int64_t option_BYTES;
typedef const char *option_TEXT;
typedef struct pid_list option_PIDS;
typedef unsigned option_METHOD; /* bit per enum python_found_by; 0: any */

struct options {
    enum verb verb;
    char *const
        *words; /* the command of a launch, the program of run, the file of view; ends with NULL */
    struct pid_list pids;
    const char *output, *format, *profile_only, *profile_exclude, *program_path, *python;
    const char *record, *replay;
    double duration_s, rate_hz, interval_s, max_overhead, cpu_percent_threshold, profile_interval_s;
    bool nonblocking, native, native_stacks, stacks, subprocesses, profile_all, system_libraries;
    int64_t allocation_window, malloc_threshold;
    bool cpu_only, memory, gpu, leak_detector;
    bool virtual_time, on, off, quiet, cli, reduced, json, help, help_advanced, version;
    unsigned find;
};

/* 0, or -EINVAL with one sentence that names the nearest known word. */
int options_parse(int argc, char *const *argv, struct options *ret, struct failure *why);

/* Coloured where `out` wants it. */
void options_write_help(FILE *out, bool advanced);
