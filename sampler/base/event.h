/*
 * Facts on their way from those who read a target to those who show or count them. Both sides include
 * this file and never each other. Every pointer is borrowed and lives until the producer's next read.
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
    const char *name;   /* UTF-8; qualified where CPython knows it; symbol of a native frame; may be NULL */
    const char *file;   /* co_filename, or the native source file; may be NULL */
    int line;           /* 0: unknown */
    int column;         /* 1-based, in UTF-8 bytes; 0: unknown */
    const char *module; /* native: the mapped object's path */
    remote_addr ip;     /* native: the instruction */
    uint64_t offset;    /* native: from the symbol's start, or from the module's when there is none */
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

struct thread_event {
    pid_t tid;         /* as the profiler's own PID namespace numbers it */
    uint64_t ident;    /* threading.get_ident() */
    const char *name;  /* threading's name, else the OS's; may be NULL */
    int64_t interpreter;
    enum thread_state state;
    bool holds_gil;
    const struct frame_event *frames; /* innermost first */
    size_t frame_count;
    const char *error; /* NULL, or why the frames are missing or incomplete */
};

/* All threads of one process, once. */
struct dump_event {
    pid_t pid;
    const char *command; /* how it was started, cut */
    const char *python;  /* "3.13.1", "3.14.0t" */
    const struct thread_event *threads;
    size_t thread_count;
};
