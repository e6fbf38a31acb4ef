/*
 * One report for the tests of its renderers, made by hand: ten seconds of two processes, lines that
 * compute, wait and allocate, and source text that a target may have chosen to spoil a terminal.
 */
#pragma once

#include "output/model/report.h"

#define ITEMS(array) .items = (array), .count = sizeof(array) / sizeof *(array)
#define WAITED(kind, time)                                                                         \
    {                                                                                              \
        {                                                                                          \
            [THREAD_WAIT_##kind - THREAD_WAIT_GIL] = (time)                                        \
        }                                                                                          \
    }

static struct native_share sample_native_top[] = {
    { "deflate_slow", "/usr/lib/libz.so.1.2.13", 2.25 },
    { "longest_match", "/usr/lib/libz.so.1.2.13", 0.5 },
    { "std::vector<int, std::allocator<int> >::push_back(int const&)", "/opt/lib/_engine.so",
      0.25 },
};

/* Shares are of ten seconds. */
static struct line_stats sample_lines[] = {
    { .lineno = 1, .line = "import threading, zlib\n" },
    { .lineno = 2, .line = "\n" },
    { .lineno = 3, .line = "def squeeze(data):\n" },
    { .lineno = 4,
      .line = "    return zlib.compress(data, level=9)  # the hottest line of them all, "
              "with a remark that goes on until it is wider than any terminal is\n",
      .n_cpu_percent_python = 2,
      .n_cpu_percent_c = 30,
      .n_sys_percent = 4.5,
      .error_percent = 1.25,
      .cpu_python_s = 0.2,
      .cpu_native_s = 3,
      .cpu_kernel_s = 0.45,
      .cumulative_s = 3.65,
      .samples = 365,
      .n_core_utilization = 0.5,
      .native_top = { ITEMS(sample_native_top) } },
    { .lineno = 5, .line = "\n" },
    { .lineno = 6, .line = "def count(n):\r\n" },
    { .lineno = 7,
      .line = "\ttotal = 0\n",
      .n_cpu_percent_python = 0.3,
      .error_percent = 0.1,
      .cpu_python_s = 0.03,
      .cumulative_s = 0.03,
      .samples = 3 },
    { .lineno = 8,
      .line = "\tfor i in range(n):\ttotal += i\n",
      .n_cpu_percent_python = 41.5,
      .error_percent = 1.5,
      .cpu_python_s = 4.15,
      .cumulative_s = 4.15,
      .samples = 415,
      .n_core_utilization = 0.5 },
    { .lineno = 9,
      .line = "    lock.acquire()",
      .n_sys_percent = 12,
      .error_percent = 0.9,
      .idle_s = 1.2,
      .cumulative_s = 1.2,
      .samples = 460,
      .wait_s = { { [THREAD_WAIT_LOCK - THREAD_WAIT_GIL] = 3.4,
                    [THREAD_WAIT_CPU - THREAD_WAIT_GIL] = 0.004 } } },
    { .lineno = 10, .line = "    squeeze(count(9))", .cumulative_s = 7.8 },
    { .lineno = 11, .line = "    thread.join()", .samples = 500, .wait_s = WAITED(LOCK, 5) },
    { .lineno = 12,
      .line = "    测量 = 'größe' + \"ｆｕｌｌ\" + '🐍' # "
              "漢字かな交じり文漢字かな交じり文漢字かな交じり文漢字",
      .n_cpu_percent_python = 1.5,
      .error_percent = 0.4,
      .cpu_python_s = 0.15,
      .cumulative_s = 0.15,
      .samples = 15 },
    { .lineno = 13,
      .line = "    e\xCC\x81\xCC\x82 = 'a\xE2\x80\x8D\x62'  # हिन्दी ภาษาไทย",
      .n_cpu_percent_python = 1.25,
      .cpu_python_s = 0.125,
      .cumulative_s = 0.125,
      .samples = 12 },
    { .lineno = 14, .line = "    שלום = 'مرحبا بالعالم'  # \xE2\x80\xAEright to left\xE2\x80\xAC" },
    { .lineno = 15, .line = "    bell = '\a\033[31m\033]0;title\a\x7F\xC2\x9B' # \xFF\xC3( \f" },
};

static struct line_stats sample_functions[] = {
    { .lineno = 3,
      .line = "squeeze",
      .n_cpu_percent_python = 2,
      .n_cpu_percent_c = 30,
      .n_sys_percent = 4.5,
      .cpu_python_s = 0.2,
      .cpu_native_s = 3,
      .cpu_kernel_s = 0.45,
      .cumulative_s = 3.65,
      .samples = 365 },
    { .lineno = 6,
      .line = "count",
      .n_cpu_percent_python = 41.8,
      .cpu_python_s = 4.18,
      .cumulative_s = 4.18,
      .samples = 418 },
    { .lineno = 9, .line = "Never.called" },
    { .lineno = 10, .line = "main.<locals>.größe", .cumulative_s = 7.8 },
};

static struct line_stats sample_small_lines[] = {
    { .lineno = 1, .line = "x = 1", .n_cpu_percent_python = 0.5, .cpu_python_s = 0.05 },
};

static struct line_stats sample_other_lines[] = {
    { .lineno = 1, .line = "def rest():" },
    { .lineno = 2,
      .line = "    pass",
      .n_cpu_percent_python = 6.45,
      .cpu_python_s = 0.645,
      .cumulative_s = 0.645,
      .samples = 64 },
};

static struct report_file sample_files[] = {
    { .path = "/srv/app/a/very/long/way/down/to/the/module/that/holds/the/rest/of/it/rest.py",
      .percent_cpu_time = 6.45,
      .lines = { ITEMS(sample_other_lines) } },
    { .path = "/srv/app/prog.py",
      .percent_cpu_time = 93.05,
      .lines = { ITEMS(sample_lines) },
      .functions = { ITEMS(sample_functions) } },
    { .path = "/srv/app/small.py",
      .percent_cpu_time = 0.5,
      .lines = { ITEMS(sample_small_lines) } },
};

static const char *sample_argv[] = { "python3", "/srv/app/prog.py", "--größe", "9\033[2J" };
static const char *sample_child_argv[] = { "python3", "-c", "from multiprocessing" };
static const char *sample_shell_argv[] = { "sh", "-c", "true" };

static struct report_process sample_processes[] = {
    { .pid = 4711,
      .ppid = 1,
      .rank = -1,
      .exit_status = 0,
      .argv = { ITEMS(sample_argv) },
      .executable = "/usr/bin/python3.13",
      .python = "3.13.1",
      .cpu_s = 6.5 },
    { .pid = 4712,
      .ppid = 4711,
      .rank = -1,
      .exit_status = 0,
      .argv = { ITEMS(sample_child_argv) },
      .executable = "/usr/bin/python3.13",
      .python = "3.13.1",
      .cpu_s = 1.6 },
    { .pid = 4713,
      .ppid = 4711,
      .rank = -1,
      .exit_status = 0,
      .argv = { ITEMS(sample_shell_argv) },
      .executable = "/bin/dash",
      .note = "is no Python" },
};

static struct report_thread sample_threads[] = {
    { .pid = 4711, .tid = 4711, .name = "MainThread" },
    { .pid = 4711, .tid = 4720, .name = "Thread-1" },
    { .pid = 4712, .tid = 4712, .name = "MainThread" },
};

static const char *sample_notes[] = {
    "1 child lived too short to be looked at.",
    "Of /srv/app/rest.py, the source has changed since the program read it, so that the text of a "
    "line may not be what ran there.",
};

static const struct report sample_report = {
    .profiler_name = "scalene-attach",
    .profiler_version = "0.1.0",
    .mode = "launch",
    .program = "/srv/app/prog.py",
    .filename = "/srv/app",
    .entrypoint_dir = "/srv/app",
    .elapsed_time_sec = 10.5,
    .files = { ITEMS(sample_files) },
    .processes = { ITEMS(sample_processes) },
    .threads = { ITEMS(sample_threads) },
    .sampling = { .rate_hz = 100,
                  .samples = 1834,
                  .dropped = 3,
                  .pauses = 212,
                  .longest_pause_us = 310,
                  .paused_s = 0.021,
                  .profiler_cpu_s = 0.13 },
    .totals = { .elapsed_s = 10.5,
                .cpu_python_s = 5,
                .cpu_native_s = 3.1,
                .cpu_kernel_s = 0.5,
                .idle_s = 1.4,
                .wait_s = { { [THREAD_WAIT_LOCK - THREAD_WAIT_GIL] = 8.4,
                              [THREAD_WAIT_CPU - THREAD_WAIT_GIL] = 0.004 } } },
    .notes = { ITEMS(sample_notes) },
};
