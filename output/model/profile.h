/*
 * Events in, statistics out. Deterministic: no clock, no files; the same events give the same
 * report. What is kept is bounded by the program's code, not by how long it runs.
 */
#pragma once

#include "output/model/report.h"
#include "output/model/source.h"
#include "sampler/base/error.h"
#include "sampler/base/event.h"

/* Told of each event before it is counted: a recording. What is not 0 ends the adding. */
struct profile_tap {
    int (*process)(struct profile_tap *self, const struct process_event *process);
    int (*tick)(struct profile_tap *self, const struct tick_event *tick);
    int (*sampling)(struct profile_tap *self, const struct sampling_event *sampling);
    int (*memory)(struct profile_tap *self, const struct memory_event *event);
    int (*memory_loss)(struct profile_tap *self, const struct memory_loss_event *loss);
};

/* Everything is borrowed for the profile's life. Lists end with NULL and may be NULL. */
struct profile_settings {
    const char *profiler_version;
    const char *program;      /* absolute path of the script; "" when there is none */
    const char *program_path; /* code below this folder is the user's; NULL or "": every file that
                                 is no library */
    const char *const *more_paths; /* the same of other programs that are profiled with it */
    const char *entrypoint_dir;    /* folder of the script; "" for -m and -c */
    const char *const *args;       /* argv as the program sees it */
    bool attached, async, profile_all, system_libraries, virtual_time;
    const char *const *only, *const *exclude; /* parts of paths */
    const char *const *library_paths; /* folders of the standard library and packages, beyond what
                                         their names tell */
    double start_time_absolute,
        start_time_perf; /* Unix time, and the monotonic clock at that moment */
    double code_since; /* Unix time from which on the programs may have read their code; 0: since we
                          began */
    double wanted_rate_hz, max_overhead_percent; /* the first 0: nobody asked for a rate */
    double cpu_percent_threshold;                /* files below both are left out */
    int64_t malloc_threshold;
    int cpu_count;                 /* that the target may use */
    bool no_stacks;                /* of CPU time and waiting; allocations have theirs */
    bool memory, leak_detector;    /* allocations are recorded, and looked at for leaks */
    uint64_t allocation_window;    /* mean bytes between two samples of them */
    struct source_reader *sources; /* NULL: no source text */
    struct profile_tap *tap;       /* NULL: nobody listens */
};

struct profile;

int profile_new(const struct profile_settings *settings, struct profile **ret);
void profile_free(struct profile *profile);

/* Each may be called in any order; 0 or -ENOMEM. A process may be told again: the later word holds.
 */
int profile_add_process(struct profile *profile, const struct process_event *process);
int profile_add_tick(struct profile *profile, const struct tick_event *tick);
int profile_set_sampling(struct profile *profile, const struct sampling_event *sampling);

int profile_add_memory(struct profile *profile, const struct memory_event *event);
int profile_add_memory_loss(struct profile *profile, const struct memory_loss_event *loss);

/* Was it told of that process, which has not ended since? */
bool profile_knows(const struct profile *profile, pid_t pid);

/*
 * While it is muted, ticks, allocations and copies are neither counted nor told to the tap: their
 * time is nobody's. Processes are, and what happens to blocks that are known.
 */
void profile_mute(struct profile *profile, bool muted);

/* One sentence about what is missing or uncertain; the same one twice is kept once. */
int profile_add_note(struct profile *profile, const char *note);

/*
 * Is there a shown line in the stack to which idle time may go, were it the main thread's? Not
 * where it only joins other threads. For the loop, which leaves sleeping threads alone while nobody
 * asks for them.
 */
bool profile_takes_idle(struct profile *profile, pid_t pid, const struct frame_event *frames,
                        size_t count);

/* The process that all others come from, or the first such. All is the profile's. */
struct profile_first {
    const char *const *argv; /* ends with NULL */
    const char *cwd;         /* NULL: unknown */
    const char *module;      /* what runpy runs in it (-m); NULL: nothing yet */
    bool is_python;
};
bool profile_find_first(const struct profile *profile, struct profile_first *ret);

/* In the place of what the settings say, as reports tell it; what is shown does not depend on it.
 * The list is borrowed. */
void profile_set_program(struct profile *profile, const char *program, const char *entrypoint_dir,
                         const char *const *args);

/* What a heartbeat shows. The texts live as long as the profile. */
struct profile_glance {
    double base_s;
    const char *hottest_file; /* NULL: none yet */
    int hottest_line;
    double hottest_percent;
};
void profile_look(const struct profile *profile, struct profile_glance *ret);

/* As things stand; the profile goes on. */
int profile_report(struct profile *profile, struct report **ret);
