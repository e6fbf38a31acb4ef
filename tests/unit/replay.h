/*
 * A profile from a stream of tests/streams, and its sources, which the stream's files have below
 * /srv. Replays as the program would record and report, but for the clock.
 */
#pragma once

#include "output/model/profile.h"
#include "sampler/base/cleanup.h"
#include "sampler/loop/recorder.h"

#include <string.h>

DEFINE_CLEANUP(struct profile *, profile_free)
DEFINE_CLEANUP(struct report *, report_free)
#define AUTO_PROFILE CLEANUP(profile_freep)
#define AUTO_REPORT CLEANUP(report_freep)

static inline void tests_path(char *path, size_t size, const char *name)
{
    snprintf(path, size, "%.*s/../%s", (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__, name);
}

static inline int stored_source_read(struct source_reader *self, const char *file,
                                     struct source *ret)
{
    (void)self;
    char name[512], path[1024];
    if (strncmp(file, "/srv/", 5) != 0)
        return -ENOENT;
    snprintf(name, sizeof name, "streams/sources/%s", file + 5);
    tests_path(path, sizeof path, name);
    AUTO_FCLOSE FILE *source = fopen(path, "re");
    if (!source)
        return -ENOENT;
    ret->bytes = malloc(1 << 16);
    ret->size = fread(ret->bytes, 1, 1 << 16, source);
    ret->modified_s = 1500000000;
    return 0;
}

static struct source_reader stored_sources = { stored_source_read };

struct profile_sink {
    struct stream_sink sink;
    struct profile *profile;
};

static inline int sink_process(struct stream_sink *sink, const struct process_event *process)
{
    return profile_add_process(((struct profile_sink *)sink)->profile, process);
}

static inline int sink_tick(struct stream_sink *sink, const struct tick_event *tick)
{
    return profile_add_tick(((struct profile_sink *)sink)->profile, tick);
}

static inline int sink_sampling(struct stream_sink *sink, const struct sampling_event *sampling)
{
    return profile_set_sampling(((struct profile_sink *)sink)->profile, sampling);
}

static inline int sink_memory(struct stream_sink *sink, const struct memory_event *event)
{
    return profile_add_memory(((struct profile_sink *)sink)->profile, event);
}

static inline int sink_memory_loss(struct stream_sink *sink, const struct memory_loss_event *loss)
{
    return profile_add_memory_loss(((struct profile_sink *)sink)->profile, loss);
}

static const char *const replay_args[] = { "main.py", "--fast", NULL };

/* What a test may change before it replays. */
static inline struct profile_settings replay_settings(const char *program_path)
{
    return (struct profile_settings){
        .profiler_version = "1.2.3",
        .program = "/srv/shop/main.py",
        .program_path = program_path,
        .entrypoint_dir = program_path,
        .args = replay_args,
        .async = true,
        .start_time_absolute = 1600000000.25,
        .start_time_perf = 1000.5,
        .cpu_percent_threshold = 1,
        .malloc_threshold = 100,
        .cpu_count = 2,
        .sources = &stored_sources,
    };
}

static inline struct profile *replay_from(FILE *file, const char *name,
                                          const struct profile_settings *settings)
{
    struct profile_sink sink = {
        { sink_process, sink_tick, sink_sampling, sink_memory, sink_memory_loss }, NULL
    };
    struct failure why = { 0 };
    assert_int_equal(profile_new(settings, &sink.profile), 0);
    if (stream_replay(file, &sink.sink, &why))
        fail_msg("%s: %s", name, why.text);
    return sink.profile;
}

static inline struct profile *replay(const char *name, const struct profile_settings *settings)
{
    char path[1024];
    tests_path(path, sizeof path, name);
    AUTO_FCLOSE FILE *file = fopen(path, "re");
    if (!file)
        fail_msg("%s: cannot open it", path);
    return replay_from(file, path, settings);
}

static inline struct report *replay_report(const char *name,
                                           const struct profile_settings *settings)
{
    AUTO_PROFILE struct profile *profile = replay(name, settings);
    struct report *report = NULL;
    assert_int_equal(profile_report(profile, &report), 0);
    return report;
}

/* The stream with memory, as its program would be profiled. */
static inline struct report *replay_memory_report(void)
{
    struct profile_settings settings = replay_settings("/srv/cache");
    settings.program = "/srv/cache/main.py";
    settings.memory = settings.leak_detector = true;
    settings.allocation_window = 524287;
    return replay_report("streams/memory.stream", &settings);
}

static inline struct report_file *file_find(const struct report *report, const char *path)
{
    for (size_t i = 0; i < report->files.count; i++)
        if (strcmp(report->files.items[i].path, path) == 0)
            return &report->files.items[i];
    return NULL;
}

static inline const struct line_stats *line_find(const struct report *report, const char *path,
                                                 size_t line)
{
    const struct report_file *file = file_find(report, path);
    if (!file || line > file->lines.count)
        fail_msg("%s:%zu is not in the report", path, line);
    return &file->lines.items[line - 1];
}
