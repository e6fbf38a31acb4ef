/*
 * Facts on their way from those who read a target to those who show or count them. Both sides
 * include this file and never each other. Every pointer is borrowed and lives until the producer's
 * next read.
 */
#pragma once

#include "sampler/base/remote.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum frame_kind { FRAME_PYTHON, FRAME_NATIVE, FRAME_GC };

struct frame_event {
    enum frame_kind kind;
    const char
        *name; /* UTF-8; qualified where CPython knows it; symbol of a native frame; may be NULL */
    const char *file;   /* co_filename, or the native source file; may be NULL */
    int line;           /* 0: unknown */
    int first_line;     /* Python: of the function; 0: unknown */
    int column;         /* 1-based, in UTF-8 bytes; 0: unknown */
    const char *module; /* native: the mapped object's path */
    remote_addr ip;     /* native: the instruction */
    uint64_t offset; /* native: from the symbol's start, or from the module's when there is none */
};

enum thread_state {
    THREAD_RUNNING,
    THREAD_STOPPED,
    THREAD_WAIT_GIL,
    THREAD_WAIT_CPU,
    THREAD_WAIT_LOCK,
    THREAD_WAIT_IO,
    THREAD_WAIT_SLEEP,
    THREAD_WAIT_CHILD,
    THREAD_WAIT_GPU,
    THREAD_WAIT_OTHER,
    THREAD_STATE_COUNT
};

/* The word for it in every output: "running", "stopped", "gil", … */
const char *thread_state_name(enum thread_state state);

/* What a running thread does with its CPU. */
enum cpu_kind { CPU_PYTHON, CPU_NATIVE, CPU_KERNEL };

struct thread_event {
    pid_t tid;        /* as the profiler's own PID namespace numbers it */
    uint64_t ident;   /* threading.get_ident() */
    const char *name; /* threading's name, else the OS's; may be NULL */
    int64_t interpreter;
    enum thread_state state;
    enum thread_state met; /* its state when the look began: it may have woken up meanwhile */
    bool holds_gil;
    enum cpu_kind cpu;                /* meaningful while it runs */
    const struct frame_event *frames; /* innermost first */
    size_t frame_count;
    uint64_t run_ns, queued_ns; /* on a CPU, and waiting for one, up to this look; 0: unknown */
    const char *error;          /* NULL, or why the frames are missing or incomplete */
};

/* All threads of one process, once. */
struct dump_event {
    pid_t pid;
    const char *command; /* how it was started, cut */
    const char *python;  /* "3.13.1", "3.14.0t" */
    const struct thread_event *threads;
    size_t thread_count;
};

/* ---- profiling: what the loop tells the model ---- */

/* One thread at one tick. */
struct sample_event {
    pid_t tid;
    uint64_t ident;
    const char *name; /* may be NULL */
    bool is_main;     /* the process's main thread */
    enum thread_state state;
    /* CPU time since the thread's last sample, as the kernel charged it; this sample stands for it.
     */
    uint64_t python_ns, native_ns, kernel_ns;
    uint64_t wait_ns; /* wall time off the CPU since then; the kind is `state`'s when that is a
                         wait, else cpu */
    uint64_t samples; /* how many looks it stands for: 1, or more for a thread found as it was */
    const struct frame_event *frames; /* innermost first; native ones among them */
    size_t frame_count;
};

/* All that was seen of one process at one tick. */
struct tick_event {
    uint64_t time_ns; /* since profiling began */
    pid_t pid;
    uint64_t wall_ns;   /* since the process's last tick */
    uint64_t idle_ns;   /* of that: no thread was on a CPU or waiting for one */
    uint64_t rss_bytes; /* 0: not looked at */
    const struct sample_event *samples;
    size_t sample_count;
};

/* What the page tables of a process hold; PSS counts what n processes share as an nth. */
struct footprint {
    uint64_t rss_bytes, pss_bytes, shared_bytes, private_bytes;
    uint64_t anonymous_bytes; /* of no file */
};

/* A process that is followed begins, or ends (end_s > 0). */
struct process_event {
    pid_t pid, ppid;
    int rank;                        /* of MPI and the like; -1: none */
    const char *const *argv;         /* ends with NULL */
    const char *executable, *python; /* python NULL: it is none */
    const char *cwd;                 /* what relative file names are relative to; NULL: unknown */
    double start_s, end_s;           /* since profiling began */
    double cpu_s; /* the kernel's account of the whole process while it was followed */
    uint64_t peak_rss_bytes;
    struct footprint footprint; /* at the look at which its PSS was highest; all 0: none */
    uint64_t grown_bytes;       /* its anonymous part until then, since the first look */
    int exit_status;            /* as a shell would say it; -1: unknown, or still running */
    const char *note;           /* NULL, or why there is nothing to see */
};

/* What the shim saw of one sampled block, or of copying. */
enum memory_change {
    MEMORY_ALLOCATED,
    MEMORY_FREED,
    MEMORY_RESIZED,
    MEMORY_COPIED,
    MEMORY_EMPTIED, /* the process begins, or execs: what it had is gone, its numbers begin anew */
    MEMORY_CHANGES
};

/* The word for it in a recording: "allocated", … */
const char *memory_change_name(enum memory_change change);

struct memory_event {
    uint64_t time_ns; /* since profiling began */
    pid_t pid, tid;
    enum memory_change change;
    uint64_t block;      /* the process's own number of it; 0: copying */
    uint64_t size_bytes; /* allocated: asked for, or by how much it grew; resized: what is left */
    double weight_bytes; /* allocated, copied: what it stands for, itself included */
    bool python;         /* CPython's allocators were asked */
    const struct frame_event *frames; /* allocated, copied: innermost first */
    size_t frame_count;               /* 0: no Python on the thread's stack */
};

/* What found no room in the ring, since profiling began. */
struct memory_loss_event {
    uint64_t records, lost;
    uint64_t allocated_bytes, freed_bytes, copied_bytes;
};

/* How the sampling went, told at the end and before each writing. */
struct sampling_event {
    double rate_hz, elapsed_s, paused_s, profiler_cpu_s, longest_pause_us;
    uint64_t samples, retried, dropped, missed, pauses, profiler_peak_rss_bytes;
};
