/*
 * The reading end of the shim's ring: makes it, says when to record, and turns what the processes
 * of the tree wrote into it to events. Nothing in it is believed before it is checked; a producer
 * that died in the middle of a record holds up the others for RING_PATIENCE_NS at most.
 */
#pragma once

#include "sampler/base/error.h"
#include "sampler/base/event.h"

struct ring_reader;

#define RING_FILE_NAME "scalene-ring"
#define RING_PATIENCE_NS ((uint64_t)200000000)

struct ring_settings {
    uint64_t slot_count; /* of 256 bytes; a power of two */
    uint64_t window;     /* mean bytes allocated between two samples */
    uint64_t copy_window;
    uint64_t start_ns; /* CLOCK_MONOTONIC when profiling began: 0 of the events */
};

/* The ring is not armed yet. -EINVAL, -ENOMEM or why there can be no memory file. */
int ring_reader_new(const struct ring_settings *settings, struct ring_reader **ret,
                    struct failure *why);

/* The same in a memory file that is there and empty, and taken over. */
int ring_reader_adopt(int fd, const struct ring_settings *settings, struct ring_reader **ret,
                      struct failure *why);
void ring_reader_free(struct ring_reader *reader);

/* The memory file, sealed against being cut; borrowed. */
int ring_reader_fd(const struct ring_reader *reader);

/* While it is not armed nobody samples allocations or copies. */
void ring_reader_arm(struct ring_reader *reader, bool armed);

/* 0, or a negative errno, which ends the draining. */
struct ring_sink {
    int (*memory)(struct ring_sink *self, const struct memory_event *event);
    /* a process has the shim, and so says; NULL: nobody wants to know */
    void (*process)(struct ring_sink *self, pid_t pid, pid_t parent);
};

/* Has anybody written since it was drained? Costs nothing. */
bool ring_reader_has_news(const struct ring_reader *reader);

/*
 * Tells all that was written up to now, in the order of tickets. `now_ns` is CLOCK_MONOTONIC; by it
 * the patience with unwritten slots is measured. The number of records, what the sink returned, or
 * -ENOMEM.
 */
long ring_reader_drain(struct ring_reader *reader, uint64_t now_ns, struct ring_sink *sink);

/* A process has ended: its part of the names is forgotten, once all is told that was written by
 * now.
 */
void ring_reader_forget(struct ring_reader *reader, pid_t pid);

/* What was read and lost since the reader was made. */
void ring_reader_losses(const struct ring_reader *reader, struct memory_loss_event *ret);

/* What some process knows that it does not tell of: bits of enum ring_gap (ring_layout.h). */
uint32_t ring_reader_gaps(const struct ring_reader *reader);

/* Has the process told that it has the shim? */
bool ring_reader_knows(const struct ring_reader *reader, pid_t pid);
