/*
 * Event streams as text, one event a line and its parts below it, so that a profile can be replayed
 * without a process and read by people. Format: tests/streams/README.
 */
#pragma once

#include "sampler/base/error.h"
#include "sampler/base/event.h"

#include <stdio.h>

/* 0 or -EIO. */
int record_process(FILE *into, const struct process_event *process);
int record_tick(FILE *into, const struct tick_event *tick);
int record_sampling(FILE *into, const struct sampling_event *sampling);

/* What to do with each event; a negative return ends the replay. Events live during the call. */
struct stream_sink {
    int (*process)(struct stream_sink *self, const struct process_event *process);
    int (*tick)(struct stream_sink *self, const struct tick_event *tick);
    int (*sampling)(struct stream_sink *self, const struct sampling_event *sampling);
};

/* 0, what a sink returned, or -EBADMSG with the line in `why`. */
int stream_replay(FILE *from, struct stream_sink *sink, struct failure *why);
