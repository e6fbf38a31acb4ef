/* What the parts of a Perfetto trace share. */
#pragma once

#include "output/export/frame_table.h"
#include "output/export/ledger.h"
#include "output/export/message_stream.h"

#include <perfetto.pb-c.h>

/* A packet belongs to a sequence, in which numbers mean the same. */
enum perfetto_sequence { SEQUENCE_EVENTS = 1, SEQUENCE_MEMORY };

struct perfetto {
    struct message_stream stream;
    struct frame_table frames;
    struct ledger ledger;
    bool is_short; /* of memory */
};

/* The sequence is set here. */
void perfetto_add(struct perfetto *perfetto, enum perfetto_sequence sequence,
                  Perfetto__TracePacket *packet);

/* What was allocated on which stack: a heap profile of the process. */
void perfetto_memory_write(struct perfetto *perfetto, const struct report *report);

#define PERFETTO_SET(message, field, value)                                                        \
    do {                                                                                           \
        (message).has_##field = true;                                                              \
        (message).field = (value);                                                                 \
    } while (0)
