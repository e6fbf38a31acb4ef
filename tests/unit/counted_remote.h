/*
 * Memory of a test: ranges as an image has them, read piece by piece, with every call and piece
 * counted, and with something that may happen before a piece, as in a target that runs.
 */
#pragma once

#include "sampler/base/error.h"
#include "sampler/base/remote.h"

struct counted_remote {
    struct remote remote; /* first */
    struct image_remote image;
    unsigned calls, pieces; /* pieces: that were tried */
    size_t bytes;           /* asked for */
    void (*before_piece)(struct counted_remote *self);
    int error; /* returned instead of reading, if not 0 */
};

static inline int counted_read_pieces(struct remote *self, const struct remote_piece *pieces,
                                      size_t count, size_t *ret_tail)
{
    struct counted_remote *counted = (struct counted_remote *)self;
    counted->calls++;
    if (counted->error)
        return counted->error;
    for (size_t i = 0; i < count; i++) {
        if (counted->before_piece)
            counted->before_piece(counted);
        counted->pieces++;
        counted->bytes += pieces[i].size;
        struct remote *image = &counted->image.remote;
        if (image->read_pieces(image, &pieces[i], 1, ret_tail) != 1)
            return (int)i;
    }
    return (int)count;
}

static inline void counted_remote_init(struct counted_remote *counted,
                                       const struct image_range *ranges, size_t count)
{
    *counted = (struct counted_remote){ .remote = { counted_read_pieces } };
    image_remote_init(&counted->image, ranges, count);
}
