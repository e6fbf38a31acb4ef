/*
 * What a profile holds between events: for profile.c, which keeps it, profile_tick.c, which adds to
 * it, profile_processes.c and profile_threads.c, which find who did it, profile_memory.c and
 * memory_account.c, which do so for memory, and profile_report.c, which reads it.
 */
#pragma once

#include "output/model/memory_account.h"
#include "output/model/places.h"
#include "output/model/profile.h"
#include "output/model/stack_table.h"
#include "output/model/stack_times.h"

/* The last two more while more are alive. */
enum { RUNS_MAX = 100000, RUN_TIME_NS = 10000, THREADS_KEPT = 2048, PROCESSES_KEPT = 1024 };

struct process_tally {
    pid_t pid, ppid;
    int rank, exit_status;
    struct text_list argv; /* owned, with its texts */
    const char *executable, *python, *note;
    struct naming naming;
    double start_s, end_s, cpu_s;
    uint64_t peak_rss_bytes;
    struct footprint footprint;    /* the largest */
    uint64_t grown_bytes;          /* its anonymous part until then, since the first look */
    uint64_t cpu_ns;               /* as the samples have it */
    uint32_t main_thread;          /* number of the thread, or NOTHING */
    struct process_memory *memory; /* NULL: none was told of */
};

struct thread_tally {
    uint32_t process; /* number of it */
    pid_t tid;
    uint64_t ident;
    char *name; /* owned */
    uint64_t python_ns, native_ns, kernel_ns, wait_ns[WAIT_KINDS];
    uint64_t last_ns; /* when it was told of last */
    /* The last stack: numbers of places, outermost first, and what follows from them. */
    uint32_t *stack, *nodes; /* nodes: of the stitched stack, as far as they are known */
    size_t depth, room, node_room, known;
    uint32_t self;      /* number of the innermost shown place, or NOTHING */
    uint32_t innermost; /* of the innermost Python place, or NOTHING */
    bool joins;
    uint32_t combined;   /* number of the stitched stack */
    uint32_t generation; /* in which that and the nodes were found */
    uint32_t run;        /* the number of its last run, or NOTHING */
};

/* The same thread with the same stack. Small, as a long run fills the timeline: as many threads as
 * Linux can have, and the time since the first tick, for more than a year. */
struct stack_run {
    uint64_t thread : 22, time : 42; /* in RUN_TIME_NS */
    uint32_t stack, count;
};

struct profile {
    struct profile_settings settings;
    struct places places;
    struct key_index process_index; /* by pid and how many had it before */
    struct key_index thread_index;  /* by process and tid */
    struct process_tally *processes;
    struct thread_tally *threads;
    struct stack_run *runs;
    size_t process_room, thread_room, run_count, run_room;
    size_t threads_most, processes_most; /* of the present */
    uint64_t dropped_runs;               /* beyond the most, or of stacks or threads that went */
    uint64_t dropped_threads, dropped_processes;
    double dropped_processes_s; /* CPU seconds of them */
    struct stack_table combined, shown;
    struct stack_times times; /* of the combined ones */
    uint64_t stamp;           /* of the stack that is being added */
    uint64_t python_ns, native_ns, kernel_ns, idle_ns, wait_ns[WAIT_KINDS];
    double squares; /* of all that is in the base, in seconds */
    uint64_t first_ns, last_ns;
    bool has_ticks, has_sampling, is_muted;
    bool settled_restricted; /* what threads show was found since the first @profile */
    struct sampling_event sampling;
    struct memory_account memory;
    const char *program; /* NULL: as the settings say */
    const char *module;  /* that runpy runs in the first process; NULL: none yet */
    const char **notes;
    size_t note_count, note_room;
};

/* The last process that had this pid; a new one when none had, or the last one has ended and one
 * begins. */
int64_t process_find(struct profile *profile, pid_t pid, bool begins);
void process_done(struct process_tally *process);

/* The kernel's account of it, or what samples have. */
double process_cpu_s(const struct process_tally *process);

/* The sample's thread; a new one where there is none, for which those may have to go that were told
 * of longest ago: then all threads get other numbers. */
int64_t profile_thread_find(struct profile *profile, uint32_t process,
                            const struct sample_event *sample);

/* Processes are about to get new numbers, `moved[old]`, or to go: NOTHING, with their threads. */
int profile_threads_leave(struct profile *profile, const uint32_t *moved);

static inline const struct place *place_at(const struct profile *profile, uint32_t number)
{
    return &profile->places.places[number];
}
