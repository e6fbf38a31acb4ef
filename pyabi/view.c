#include "pyabi/view_looks.h"

#include "pyabi/array.h"
#include "sampler/base/cleanup.h"
#include "sampler/base/error.h"

#include <string.h>

enum {
    IDLE_MOMENTS = 8, /* a piece not used for so long is no longer fetched */
    PIECE_LIMIT = 1 << 18,
    BYTES_LIMIT = 1 << 28,               /* hostile chunks may overlap each other for ever */
    CHUNK_BYTES_LIMIT = BYTES_LIMIT / 2, /* frames that lie beyond need room, too */
    GAP_SHARE = 4, /* gaps take this part of what the pieces leave: a prediction always fits */
    FIRST_SLOTS = 64,
    /* Pieces so close together are one segment of the vector: a segment costs as much as copying
     * some kilobytes, and what is copied in one go is torn far less often than what is copied in
     * two. Less than a page, since a whole one in between could be unmapped. */
    GAP_MAX = 4095,
};

int view_new(struct view **ret)
{
    struct view *view = calloc(1, sizeof *view);
    if (!view)
        return -ENOMEM;
    *ret = view;
    return 0;
}

void view_free(struct view *view)
{
    if (!view)
        return;
    free(view->pieces);
    for (unsigned look = 0; look < VIEW_LOOKS_SCATTERED; look++)
        free(view->looks[look]);
    free(view->segments);
    free(view->slots);
    free(view->chunks);
    free(view->vector);
    free(view);
}

static size_t slot_of(const struct view *view, remote_addr address)
{
    size_t slot = (address * 0x9E3779B97F4A7C15u) >> 32 & (view->slot_count - 1);
    while (view->slots[slot] && view->pieces[view->slots[slot] - 1].address != address)
        slot = (slot + 1) & (view->slot_count - 1);
    return slot;
}

static int slots_rebuild(struct view *view, size_t wanted)
{
    size_t size = view->slot_count ? view->slot_count : FIRST_SLOTS;
    while (size < 2 * wanted)
        size *= 2;
    if (size != view->slot_count) {
        uint32_t *slots = realloc(view->slots, size * sizeof *slots);
        if (!slots)
            return -ENOMEM;
        view->slots = slots;
        view->slot_count = size;
    }
    memset(view->slots, 0, view->slot_count * sizeof *view->slots);
    for (size_t i = 0; i < view->count; i++)
        view->slots[slot_of(view, view->pieces[i].address)] = (uint32_t)i + 1;
    return 0;
}

static int chunks_add(struct view *view, size_t index)
{
    int error = array_reserve(&view->chunks, &view->chunk_capacity, view->chunk_count + 1,
                              sizeof *view->chunks);
    if (!error)
        view->chunks[view->chunk_count++] = (uint32_t)index;
    return error;
}

static int bytes_reserve(struct view *view, enum piece_rank rank, size_t extra)
{
    size_t room = view->room;
    if (view->used + extra > (rank == PIECE_CHUNK ? CHUNK_BYTES_LIMIT : BYTES_LIMIT))
        return -ENOMEM;
    for (unsigned look = 0; look < view->looks_held; look++) {
        room = view->room;
        int error = array_reserve(&view->looks[look], &room, view->used + extra, 1);
        if (error)
            return error;
    }
    view->room = room;
    return 0;
}

/* A thread that is only looked at while it stands, as most are, needs one. */
static int looks_reserve(struct view *view, unsigned looks)
{
    for (; view->looks_held < looks; view->looks_held++) {
        size_t room = 0;
        int error = array_reserve(&view->looks[view->looks_held], &room, view->room, 1);
        if (error)
            return error;
    }
    return 0;
}

static struct piece *piece_add(struct view *view, enum piece_rank rank, remote_addr address,
                               size_t size)
{
    if (view->count == PIECE_LIMIT ||
        array_reserve(&view->pieces, &view->capacity, view->count + 1, sizeof *view->pieces))
        return NULL;
    if (2 * (view->count + 1) > view->slot_count && slots_rebuild(view, view->count + 1))
        return NULL;
    if (bytes_reserve(view, rank, size) || (rank == PIECE_CHUNK && chunks_add(view, view->count)))
        return NULL;
    struct piece *piece = &view->pieces[view->count++];
    *piece = (struct piece){ address,      (uint32_t)size, (uint32_t)view->used,
                             view->moment, rank,           view->turns++ };
    view->used += size;
    view->slots[slot_of(view, address)] = (uint32_t)view->count;
    return piece;
}

static bool piece_is_stale(const struct view *view, const struct piece *piece)
{
    return piece->size == 0 || view->moment - piece->last_used > IDLE_MOMENTS;
}

static int piece_compare(const void *a, const void *b)
{
    const struct piece *left = a, *right = b;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return left->address < right->address ? -1 : left->address > right->address;
}

/* What may be read between pieces in all. */
static size_t gap_room(const struct view *view)
{
    size_t own = 0;
    for (size_t i = 0; i < view->count; i++)
        own += view->pieces[i].size;
    return own < BYTES_LIMIT ? (BYTES_LIMIT - own) / GAP_SHARE : 0;
}

/* Does the piece lie behind the segment closely enough to be read with it? Takes the gap's bytes
 * from `*room`. */
static bool segment_takes(const struct segment *segment, const struct piece *piece, size_t *room)
{
    remote_addr end = segment->address + segment->size;
    size_t gap = piece->address > end ? (size_t)(piece->address - end) : 0;
    if (segment->rank != piece->rank || gap > GAP_MAX || gap > *room)
        return false;
    *room -= gap;
    return true;
}

/* Gives every piece its place in the bytes, and makes segments of neighbours. */
static int segments_build(struct view *view)
{
    struct segment *segment = NULL;
    size_t room = gap_room(view);
    view->segment_count = view->chunk_count = view->used = 0;
    int error = array_reserve(&view->segments, &view->segment_capacity, view->count,
                              sizeof *view->segments);
    for (size_t i = 0; i < view->count && !error; i++) {
        struct piece *piece = &view->pieces[i];
        if (!segment || !segment_takes(segment, piece, &room)) {
            segment = &view->segments[view->segment_count++];
            *segment = (struct segment){ .address = piece->address,
                                         .at = (uint32_t)view->used,
                                         .first_piece = (uint32_t)i,
                                         .rank = piece->rank };
        }
        uint32_t start = (uint32_t)(piece->address - segment->address);
        piece->at = segment->at + start;
        if (start + piece->size > segment->size)
            segment->size = start + piece->size;
        view->used = segment->at + segment->size;
        segment->end_piece = (uint32_t)i + 1;
        if (piece->rank == PIECE_CHUNK)
            error = chunks_add(view, i);
    }
    view->packed = view->count;
    return error ? error : bytes_reserve(view, PIECE_CODE, 0);
}

/* What cannot be held is not predicted: there is nothing in the view any more, and all is whole. */
static void pieces_forget(struct view *view)
{
    view->count = view->packed = view->segment_count = view->chunk_count = view->used = 0;
    memset(view->slots, 0, view->slot_count * sizeof *view->slots);
}

/* Drops what was of no use lately, puts the rest in order, and plans how to read it. */
static int pieces_pack(struct view *view)
{
    size_t kept = 0;
    for (size_t i = 0; i < view->count; i++)
        if (!piece_is_stale(view, &view->pieces[i]))
            view->pieces[kept++] = view->pieces[i];
    if (kept == view->count && kept == view->packed)
        return 0;
    view->count = kept;
    qsort(view->pieces, kept, sizeof *view->pieces, piece_compare);
    int error = segments_build(view);
    if (!error)
        error = slots_rebuild(view, kept);
    if (error)
        pieces_forget(view);
    return error;
}

int view_refill(struct view *view, struct remote *memory, unsigned looks)
{
    return view_refill_with(view, memory, looks, NULL, 0);
}

int view_refill_with(struct view *view, struct remote *memory, unsigned looks,
                     const struct remote_piece *others, size_t other_count)
{
    view->moment++;
    int error = pieces_pack(view);
    if (!error)
        error = looks_reserve(view, looks);
    if (error)
        return error;
    view->grown = looks == 1;
    view->look_count = looks;
    error = view_read_looks(view, memory, others, other_count);
    view->walk_start = view->turns;
    return error;
}

bool view_is_scattered(const struct view *view)
{
    for (size_t i = 0; i < view->count; i++)
        if (view->pieces[i].rank == PIECE_FRAME)
            return true;
    return false;
}

unsigned view_looks(const struct view *view)
{
    return view->look_count;
}

int view_look_again(struct view *view, struct remote *memory)
{
    int error = pieces_pack(view);
    if (!error)
        error = view_read_looks(view, memory, NULL, 0);
    view->grown = view->grown && error;
    return error;
}

static bool piece_holds(const struct piece *piece, remote_addr address, size_t size)
{
    return address >= piece->address && address - piece->address <= piece->size &&
           piece->size - (address - piece->address) >= size;
}

static struct piece *chunk_find(struct view *view, size_t from, remote_addr address, size_t size)
{
    for (size_t i = from; i < view->chunk_count; i++) {
        size_t index = (view->last_chunk + i) % view->chunk_count;
        struct piece *piece = &view->pieces[view->chunks[index]];
        if (piece_holds(piece, address, size)) {
            view->last_chunk = index;
            return piece;
        }
    }
    return NULL;
}

/* Most of what is asked for lies in the chunk where the last frame was. */
static struct piece *piece_find(struct view *view, remote_addr address, size_t size)
{
    if (view->chunk_count) {
        struct piece *last = &view->pieces[view->chunks[view->last_chunk % view->chunk_count]];
        if (piece_holds(last, address, size))
            return last;
    }
    if (!view->slot_count)
        return NULL;
    uint32_t index = view->slots[slot_of(view, address)];
    if (index && view->pieces[index - 1].size >= size)
        return &view->pieces[index - 1];
    return chunk_find(view, 1, address, size);
}

const void *view_find(struct view *view, remote_addr address, size_t size)
{
    struct piece *piece = piece_find(view, address, size);
    if (!piece)
        return NULL;
    if (piece->last_used != view->moment)
        piece->turn = view->turns++;
    piece->last_used = view->moment;
    return view->looks[0] + piece->at + (address - piece->address);
}

const void *view_find_again(struct view *view, unsigned look, remote_addr address, size_t size)
{
    const struct piece *piece = view->grown ? NULL : piece_find(view, address, size);
    return piece ? view->looks[look] + piece->at + (address - piece->address) : NULL;
}

const void *view_fetch(struct view *view, struct remote *memory, enum piece_rank rank,
                       remote_addr address, size_t size, int *ret_error)
{
    const void *found = view_find(view, address, size);
    if (found)
        return found;
    struct piece *piece = piece_add(view, rank, address, size);
    if (!piece) {
        *ret_error = -ENOMEM;
        return NULL;
    }
    view->grown = true;
    int error = remote_read(memory, address, view->looks[0] + piece->at, size);
    if (error) {
        piece->size = 0;
        *ret_error = error;
        return NULL;
    }
    return view->looks[0] + piece->at;
}

bool view_has_grown(const struct view *view)
{
    return view->grown;
}

bool view_has_moved(const struct view *view)
{
    bool moved = false;
    for (size_t i = 0; i < view->chunk_count && view->look_count > 1 && !moved; i++) {
        const struct piece *piece = &view->pieces[view->chunks[i]];
        const uint8_t *last = view->looks[view->look_count - 1];
        moved = memcmp(view->looks[0] + piece->at, last + piece->at, piece->size) != 0;
    }
    return moved;
}
