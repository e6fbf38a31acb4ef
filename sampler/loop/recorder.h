/*
 * Event streams as text, so that a profile can be replayed without a process, and read and written
 * by people. The format stands in tests/streams/README.md.
 */
#pragma once

#include "sampler/base/error.h"
#include "sampler/base/event.h"

#include <stdio.h>

struct recorder;

/* `into` is borrowed; ferror tells whether it took it all. 0 or -ENOMEM, as below. */
int recorder_new(FILE *into, struct recorder **ret);
void recorder_free(struct recorder *recorder);

int recorder_add_process(struct recorder *recorder, const struct process_event *process);
int recorder_add_tick(struct recorder *recorder, const struct tick_event *tick);
int recorder_add_sampling(struct recorder *recorder, const struct sampling_event *sampling);
int recorder_add_memory(struct recorder *recorder, const struct memory_event *event);
int recorder_add_memory_loss(struct recorder *recorder, const struct memory_loss_event *loss);

/* What to do with each event; what is not zero ends the replay. Events live during the call. */
struct stream_sink {
    int (*process)(struct stream_sink *self, const struct process_event *process);
    int (*tick)(struct stream_sink *self, const struct tick_event *tick);
    int (*sampling)(struct stream_sink *self, const struct sampling_event *sampling);
    int (*memory)(struct stream_sink *self, const struct memory_event *event);
    int (*memory_loss)(struct stream_sink *self, const struct memory_loss_event *loss);
};

/* 0, what a sink returned, -ENOMEM, or -EBADMSG with the line in `why`. */
int stream_replay(FILE *from, struct stream_sink *sink, struct failure *why);
