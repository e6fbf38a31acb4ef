#include "output/export/message_stream.h"

#include <errno.h>
#include <stdlib.h>

enum { GZIP_WINDOW = 15 + 16, ZIP_MEMORY = 8, ZIP_LEVEL = 4, ZIPPED_SIZE = 64 << 10 };

static void zip(struct message_stream *stream, int flush)
{
    uint8_t zipped[ZIPPED_SIZE];
    do {
        stream->zip.next_out = zipped;
        stream->zip.avail_out = sizeof zipped;
        deflate(&stream->zip, flush);
        fwrite(zipped, 1, sizeof zipped - stream->zip.avail_out, stream->into);
    } while (!stream->zip.avail_out);
}

void message_stream_init(struct message_stream *stream, FILE *into, bool zips)
{
    *stream = (struct message_stream){ .into = into, .zips = zips };
    if (zips && deflateInit2(&stream->zip, ZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, ZIP_MEMORY,
                             Z_DEFAULT_STRATEGY) != Z_OK)
        stream->error = -ENOMEM;
}

static int room_make(struct message_stream *stream, size_t size)
{
    if (size <= stream->room)
        return 0;
    free(stream->bytes);
    stream->bytes = malloc(2 * size);
    stream->room = stream->bytes ? 2 * size : 0;
    return stream->bytes ? 0 : -ENOMEM;
}

void message_stream_add(struct message_stream *stream, const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    if (!stream->error)
        stream->error = room_make(stream, size);
    if (stream->error || !size)
        return;
    protobuf_c_message_pack(message, stream->bytes);
    if (!stream->zips) {
        fwrite(stream->bytes, 1, size, stream->into);
        return;
    }
    stream->zip.next_in = stream->bytes;
    stream->zip.avail_in = (unsigned)size;
    zip(stream, Z_NO_FLUSH);
}

int message_stream_end(struct message_stream *stream)
{
    if (stream->zips && !stream->error)
        zip(stream, Z_FINISH);
    if (stream->zips)
        deflateEnd(&stream->zip);
    free(stream->bytes);
    stream->bytes = NULL;
    return stream->error;
}
