/*
 * Two profiles of a program before and after an edit, made by hand: a loop that got slower, a line
 * that moved, one that was edited, files that are new, gone and renamed, and source text that a
 * target may have chosen to spoil a terminal. Ten seconds each, 1000 samples.
 */
#pragma once

#include "output/model/report.h"

#define PAIR_LIST(array)                                                                           \
    {                                                                                              \
        (array), sizeof(array) / sizeof *(array)                                                   \
    }

/* A line with so many seconds of Python and of native code, and a margin in percent. */
#define PAIR_LINE(number, text, python, native, margin)                                            \
    {                                                                                              \
        .lineno = (number), .line = (text), .cpu_python_s = (python), .cpu_native_s = (native),    \
        .cumulative_s = (python) + (native), .samples = (int64_t)(100 * ((python) + (native))),    \
        .n_cpu_percent_python = 10 * (python), .n_cpu_percent_c = 10 * (native),                   \
        .error_percent = (margin)                                                                  \
    }

static struct line_stats pair_old_lines[] = {
    PAIR_LINE(1, "import zlib\n", 0, 0, 0),
    PAIR_LINE(2, "\n", 0, 0, 0),
    PAIR_LINE(3, "def squeeze(data):\n", 0, 0, 0),
    PAIR_LINE(4, "    return zlib.compress(data, 9)\n", 0.25, 3, 2),
    PAIR_LINE(5, "\n", 0, 0, 0),
    PAIR_LINE(6, "def count(n):\n", 0, 0, 0),
    PAIR_LINE(7, "    for i in range(n):\n", 1, 0, 1.5),
    PAIR_LINE(8, "        total = total + price(i)\n", 2, 0, 2.5),
    PAIR_LINE(9,
              "    return total  # \033]0;spoilt\a \xE2\x80\xAE</script><img onerror=alert(1)>\n",
              0.125, 0, 0.5),
    PAIR_LINE(10, "print(old_only)\n", 0.5, 0, 1),
};

static struct line_stats pair_new_lines[] = {
    PAIR_LINE(1, "import zlib\n", 0, 0, 0),
    PAIR_LINE(2, "# counts first, then squeezes\n", 0, 0, 0),
    PAIR_LINE(3, "\n", 0, 0, 0),
    PAIR_LINE(4, "def count(n):\n", 0, 0, 0),
    PAIR_LINE(5, "    for i in range(n):\n", 1.125, 0, 1.5),
    PAIR_LINE(6, "        total = total + price(i, tax)\n", 4, 0, 3),
    PAIR_LINE(7,
              "    return total  # \033]0;spoilt\a \xE2\x80\xAE</script><img onerror=alert(1)>\n",
              0.125, 0, 0.5),
    PAIR_LINE(8, "\n", 0, 0, 0),
    PAIR_LINE(9, "def squeeze(data):\n", 0, 0, 0),
    PAIR_LINE(10, "    return zlib.compress(data, 9)\n", 0.25, 1.5, 2),
    PAIR_LINE(11, "kept = [bytes(1 << 20) for _ in range(64)]\n", 0, 0.25, 0.75),
};

static struct line_stats pair_old_functions[] = {
    PAIR_LINE(3, "squeeze", 0.25, 3, 2),
    PAIR_LINE(6, "count", 3.125, 0, 3),
};

static struct line_stats pair_new_functions[] = {
    PAIR_LINE(4, "count", 5.25, 0, 3.25),
    PAIR_LINE(9, "squeeze", 0.25, 1.5, 2),
};

static struct line_stats pair_util_lines[] = {
    PAIR_LINE(1, "def helper_of_all(value):\n", 0, 0, 0),
    PAIR_LINE(2, "    return value.strip().lower()\n", 1, 0, 1.5),
};
static struct line_stats pair_gone_lines[] = { PAIR_LINE(1, "from gone import away\n", 1, 0, 1.5) };
static struct line_stats pair_fresh_lines[] = { PAIR_LINE(1, "from fresh import air\n", 1, 0, 1) };

static struct report_file pair_old_files[] = {
    { .path = "/srv/app/gone.py", .lines = PAIR_LIST(pair_gone_lines) },
    { .path = "/srv/app/prog.py",
      .lines = PAIR_LIST(pair_old_lines),
      .functions = PAIR_LIST(pair_old_functions) },
    { .path = "/srv/app/util.py", .lines = PAIR_LIST(pair_util_lines) },
};

static struct report_file pair_new_files[] = {
    { .path = "/srv/app/fresh.py", .lines = PAIR_LIST(pair_fresh_lines) },
    { .path = "/srv/app/lib/words/util.py", .lines = PAIR_LIST(pair_util_lines) },
    { .path = "/srv/app/prog.py",
      .lines = PAIR_LIST(pair_new_lines),
      .functions = PAIR_LIST(pair_new_functions) },
};

static const struct report pair_old = {
    .profiler_name = "scalene-attach",
    .program = "/srv/app/prog.py",
    .start_time_absolute = 1600000000,
    .elapsed_time_sec = 10,
    .memory = true,
    .max_footprint_mb = 100,
    .files = PAIR_LIST(pair_old_files),
    .sampling = { .samples = 1000, .allocation_window = 524287 },
    .totals = { .elapsed_s = 10,
                .cpu_python_s = 5.875,
                .cpu_native_s = 3,
                .cpu_kernel_s = 0.125,
                .idle_s = 1,
                .allocated_mb = 500,
                .live_mb = 10,
                .copied_mb = 4 },
};

static const struct report pair_new = {
    .profiler_name = "scalene-attach",
    .program = "/srv/app/prog.py",
    .start_time_absolute = 1600001000,
    .elapsed_time_sec = 11.5,
    .memory = true,
    .max_footprint_mb = 164,
    .files = PAIR_LIST(pair_new_files),
    .sampling = { .samples = 1000, .allocation_window = 524287 },
    .totals = { .elapsed_s = 11.5,
                .cpu_python_s = 7.5,
                .cpu_native_s = 1.75,
                .cpu_kernel_s = 0.125,
                .idle_s = 1.25,
                .allocated_mb = 510,
                .live_mb = 74,
                .copied_mb = 4 },
};

/* What the new one allocates, which no static table tells. */
static inline void pair_set_memory(void)
{
    pair_new_lines[10].n_malloc_mb = pair_new_lines[10].allocated_mb = 64;
    pair_new_lines[10].live_mb = pair_new_lines[10].n_peak_mb = 64;
    pair_old_lines[3].n_malloc_mb = pair_old_lines[3].allocated_mb = 100;
    pair_new_lines[9].n_malloc_mb = pair_new_lines[9].allocated_mb = 104;
}
