/* What a view consists of: view.c knows which pieces there are, view_looks.c reads them. */
#pragma once

#include "pyabi/view.h"

struct piece {
    remote_addr address;
    uint32_t size;
    uint32_t at; /* where its bytes stand, at every look */
    uint32_t last_used;
    uint8_t rank;
    uint64_t turn; /* when it was asked for first in its last moment, among all */
};

/* Neighbouring pieces of one rank, read together. */
struct segment {
    remote_addr address;
    uint32_t size, at;
    uint32_t first_piece, end_piece; /* those that it holds */
    uint8_t rank;
    uint64_t turn; /* of the piece that the last walk asked for first; UINT64_MAX: of none */
};

struct view {
    struct piece *pieces;
    size_t count, capacity;
    uint8_t *looks[VIEW_LOOKS_SCATTERED];
    unsigned looks_held; /* with room for their bytes: as many as were ever wanted */
    unsigned look_count; /* at this moment */
    size_t used, room;
    struct segment *segments;
    size_t segment_count, segment_capacity;
    size_t packed;   /* pieces that the segments cover; later ones were fetched on demand */
    uint32_t *slots; /* piece index + 1 by address; 0 is free */
    size_t slot_count;
    uint32_t *chunks; /* the pieces that hold many frames each, and are searched by range */
    size_t chunk_count, chunk_capacity;
    size_t last_chunk; /* a walk mostly stays where it is */
    struct remote_piece *vector;
    size_t vector_capacity;
    uint32_t moment;
    uint64_t turns, walk_start; /* turns of the last walk begin there */
    bool grown;
};

/*
 * Reads all segments as often as the view has looks, behind the others. A segment that cannot be
 * read any more is dropped; one that could be at the first look is -EAGAIN. -EFAULT: the others
 * could not be read.
 */
int view_read_looks(struct view *view, struct remote *memory, const struct remote_piece *others,
                    size_t other_count);
