/*
 * Messages of protobuf one after the other: what several messages of one type hold piece by piece
 * is, put together, one message that holds all of it. So no export is ever whole in memory.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdio.h>
#include <zlib.h>

struct message_stream {
    FILE *into;
    bool zips; /* as gzip */
    z_stream zip;
    uint8_t *bytes;
    size_t room;
    int error; /* the first one; what is added after it is not written */
};

void message_stream_init(struct message_stream *stream, FILE *into, bool zips);
void message_stream_add(struct message_stream *stream, const ProtobufCMessage *message);

/* 0 or -ENOMEM, the first that happened since it began. */
int message_stream_end(struct message_stream *stream);
