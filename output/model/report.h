/*
 * A profile ready to be shown: plain data, filled by a live profile or by a profile that was read
 * from JSON. All renderers draw from this and nothing else. Texts and lists lie in the report's
 * arena.
 */
#pragma once

#include "output/model/line_stats.h"
#include "sampler/base/arena.h"

struct report_leak {
    const char *lineno; /* a number, as text */
    double likelihood, velocity_mb_s, live_mb;
    struct text_list stack; /* through which most came: outermost first, "file function:line;" */
};

struct report_file {
    const char *path;
    double percent_cpu_time;
    struct {
        struct line_stats *items; /* every line, in order: line N is items[N - 1] */
        size_t count;
    } lines;
    struct {
        struct line_stats *items; /* by first line */
        size_t count;
    } functions;
    struct {
        struct report_leak *items;
        size_t count;
    } leaks;
    struct text_list imports;
};

struct report_process {
    int64_t pid, ppid, rank, exit_status; /* the last two -1: none */
    struct text_list argv;
    const char *executable, *python, *note;
    double start_s, end_s, cpu_s, peak_rss_mb, peak_footprint_mb;
    double rss_mb, pss_mb, shared_mb, private_mb; /* when its PSS was highest; 0: not looked at */
};

struct report_thread {
    int64_t pid, tid, ident;
    const char *name;
    double cpu_python_s, cpu_native_s, cpu_kernel_s;
    struct wait_times wait_s;
};

/* A stack of Python frames that are shown, with its shares of the base (0..1). */
struct report_path {
    struct text_list frames; /* outermost first, "file function:line;" */
    int64_t count;
    double python_time, c_time, cpu_samples;
};

struct report_frame {
    const char *kind; /* "py" or "native" */
    const char *display_name, *filename_or_module;
    int64_t line, ip, offset; /* -1: none */
};

struct report_stack {
    struct {
        const struct report_frame **items; /* outermost first; equal frames may be the same one */
        size_t count;
    } frames;
    int64_t hits;     /* of CPU and idle time; a stack that only waited beside others has none */
    double megabytes; /* of a memory stack */
};

/* The same thread with the same stack for `count` samples. */
struct report_run {
    double t_sec;
    int64_t stack_index, count, thread_id, pid, tid;
};

/* What one thread did on one of the combined stacks. */
struct report_stack_time {
    int64_t stack_index, pid, tid; /* the last two -1: of several threads */
    int64_t samples, hits;         /* looks; its part of the stack's hits */
    double cpu_python_s, cpu_native_s, cpu_kernel_s, idle_s;
    struct wait_times wait_s;
};

struct report_sampling {
    double rate_hz, longest_pause_us, paused_s, profiler_cpu_s, profiler_peak_rss_mb;
    int64_t samples, retried, dropped, missed, pauses;
    int64_t allocation_window, shim_records, shim_lost;
};

struct report_totals {
    double elapsed_s, cpu_python_s, cpu_native_s, cpu_kernel_s, idle_s;
    struct wait_times wait_s;
    double allocated_mb, freed_mb, live_mb, copied_mb;
};

/* A file in which time went by with no shown line on the stack. */
struct report_hidden {
    const char *path;
    double seconds;
};

struct report {
    const char *profiler_name, *profiler_version; /* NULL: another profiler wrote it */
    const char *mode;                             /* "launch", "attach" */
    const char *program, *filename, *entrypoint_dir;
    struct text_list args;
    double start_time_absolute, start_time_perf, elapsed_time_sec;
    bool memory, gpu, async_profile;
    const char *gpu_device;
    int64_t alloc_samples, max_footprint_lineno, main_thread_id; /* the last two -1: none */
    double max_footprint_mb, max_footprint_python_fraction, native_allocations_mb, growth_rate;
    const char *max_footprint_fname;
    struct point_list samples;
    struct {
        struct report_file *items; /* by path */
        size_t count;
    } files;
    struct {
        struct report_path *items;
        size_t count;
    } stacks;
    struct {
        struct report_stack *items;
        size_t count;
    } combined_stacks, memory_stacks;
    struct number_list memory_stacks_live_mb; /* of each memory stack, or empty: it is not told */
    struct {
        struct report_run *items;
        size_t count;
    } timeline;
    struct {
        struct report_stack_time *items; /* by stack */
        size_t count;
    } stack_times;
    struct {
        struct report_process *items;
        size_t count;
    } processes;
    struct {
        struct report_thread *items;
        size_t count;
    } threads;
    struct report_sampling sampling;
    struct report_totals totals;
    struct text_list notes;

    /* Not in the JSON: what the profile that this was read from has no key for, or no value of the
     * right type, which is another thing than 0: a bit for each of columns[], and a flag where a
     * member of the report, or of its files, begins; NULL: it has all. What one line or file tells
     * is not absent: the others are read as 0. */
    uint64_t told_columns, absent_columns;
    bool *absent, *absent_of_files;

    /* Not in the JSON: values there whose type was not their key's, and the first one's key. */
    struct {
        uint64_t count;
        const char *first;
    } misfits;

    /* Not in the JSON: why there may be nothing to see. At most five, the biggest first. */
    struct {
        struct report_hidden *items;
        size_t count;
        bool by_decorator; /* only functions with @profile are shown */
    } hidden;

    struct arena arena;
};

/* All zero is an empty report. */
struct report *report_new(void);
void report_free(struct report *report);

/* Whether that member of the report is known, and of its files the member at that offset. */
bool report_tells(const struct report *report, const void *member);
bool report_tells_of_files(const struct report *report, size_t member);

/* CPU + idle seconds: what the percentages are shares of. */
double report_base_s(const struct report *report);

/* More than what a program that only waits takes to wake up and sleep on. */
bool report_has_time(const struct report *report);

/* Of that memory stack; 0 where it is not told. Never more than was allocated. */
double report_stack_live_mb(const struct report *report, size_t index);

/* An interpreter knows it. */
bool report_thread_is_python(const struct report_thread *thread);
