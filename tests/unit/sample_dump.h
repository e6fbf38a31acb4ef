/*
 * One dump for the tests of its renderers: every kind of frame and state, facts that are missing,
 * and texts that a target may have chosen to spoil a terminal or a parser.
 */
#pragma once

#include "sampler/base/event.h"

static const struct frame_event sample_native[] = {
    { .kind = FRAME_NATIVE,
      .name = "std::vector<int>::push_back(int&&)",
      .file = "/usr/include/c++/12/bits/stl_vector.h",
      .line = 1296,
      .module = "/opt/lib/_engine.so",
      .ip = 0x7f1234567890,
      .offset = 0x1c },
    { .kind = FRAME_NATIVE,
      .module = "/opt/b\xfc\xfc\xdf/_stripped.so",
      .ip = 0x7f1200000abc,
      .offset = 0xabc },
    { .kind = FRAME_NATIVE, .ip = 0xdead0000 },
    { .kind = FRAME_GC, .name = "<GC>" },
    { .kind = FRAME_PYTHON,
      .name = "Größe.messen.<locals>.<lambda>",
      .file = "/srv/app/maße.py",
      .line = 42,
      .column = 17 },
    { .kind = FRAME_PYTHON, .name = "<module>", .file = "/srv/app/__main__.py", .line = 1 },
};

static const struct frame_event sample_odd[] = {
    { .kind = FRAME_PYTHON,
      .name = "a_name_that_is_longer_than_forty_columns_and_stands_alone",
      .file = "<string>",
      .line = 7 },
    { .kind = FRAME_PYTHON, .name = "测量", .file = "二.py", .line = 3 },
    { .kind = FRAME_PYTHON, .name = "\033[31mred\"\\\n", .file = "tab\there", .line = 9 },
    { .kind = FRAME_PYTHON, .name = "broken \xff utf-8", .file = "x.py" },
    { .kind = FRAME_PYTHON },
};

static const struct thread_event sample_threads[] = {
    { .tid = 4711,
      .ident = 140737353922368,
      .name = "MainThread",
      .state = THREAD_RUNNING,
      .holds_gil = true,
      .frames = sample_native,
      .frame_count = sizeof sample_native / sizeof *sample_native },
    { .tid = 4712,
      .ident = 18446744073709551615u,
      .name = "🐍 \033]0;title\a",
      .interpreter = 3,
      .state = THREAD_WAIT_GIL,
      .frames = sample_odd,
      .frame_count = sizeof sample_odd / sizeof *sample_odd },
    { .tid = 4713, .name = "Latin-1 \xe9", .state = THREAD_WAIT_IO },
    { .ident = 5,
      .name = "",
      .state = THREAD_WAIT_LOCK,
      .error = "the thread ended while it was read" },
    { .tid = 4715, .name = "stopped", .state = THREAD_STOPPED },
    { .tid = 4716, .name = "cpu", .state = THREAD_WAIT_CPU },
    { .tid = 4717, .name = "sleep", .state = THREAD_WAIT_SLEEP },
    { .tid = 4718, .name = "child", .state = THREAD_WAIT_CHILD },
    { .tid = 4719, .name = "gpu", .state = THREAD_WAIT_GPU },
    { .tid = 4720,
      .name = "cut",
      .state = THREAD_WAIT_OTHER,
      .frames = sample_native + 4,
      .frame_count = 1,
      .error = "the stack is deeper than what is shown" },
};

static const struct dump_event sample_dump = {
    .pid = 4711,
    .command = "python3 -m app --name Zoë \x1b[2J",
    .python = "3.14.2t",
    .threads = sample_threads,
    .thread_count = sizeof sample_threads / sizeof *sample_threads,
};
