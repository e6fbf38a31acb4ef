#include "pyabi/view.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/error.h"

#include <string.h>

enum {
    IDLE_MOMENTS = 8,  /* a piece not used for so long is no longer fetched */
    PIECE_LIMIT = 1 << 18,
    FIRST_SLOTS = 64,
};

struct piece {
    remote_addr address;
    uint32_t size;
    uint32_t at; /* where its bytes stand, in both copies */
    uint32_t last_used;
    uint8_t rank;
};

struct view {
    struct piece *pieces;
    size_t count, capacity;
    uint8_t *bytes, *again;
    size_t used, room;
    uint32_t *slots; /* piece index + 1 by address; 0 is free */
    size_t slot_count;
    uint32_t *chunks; /* the pieces that hold many frames each, and are searched by range */
    size_t chunk_count, chunk_capacity;
    size_t last_chunk; /* a walk mostly stays where it is */
    struct remote_piece *vector;
    size_t vector_capacity;
    uint32_t moment;
    bool grown;
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
    free(view->bytes);
    free(view->again);
    free(view->slots);
    free(view->chunks);
    free(view->vector);
    free(view);
}

static int array_grow(void *slot, size_t *capacity, size_t wanted, size_t element)
{
    if (wanted <= *capacity)
        return 0;
    size_t grown = *capacity ? *capacity : 64;
    while (grown < wanted)
        grown *= 2;
    void *moved = realloc(*(void **)slot, grown * element);
    if (!moved)
        return -ENOMEM;
    *(void **)slot = moved;
    *capacity = grown;
    return 0;
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
    int error = array_grow(&view->chunks, &view->chunk_capacity, view->chunk_count + 1,
                           sizeof *view->chunks);
    if (!error)
        view->chunks[view->chunk_count++] = (uint32_t)index;
    return error;
}

static int bytes_reserve(struct view *view, size_t extra)
{
    size_t capacity = view->room;
    int error = array_grow(&view->bytes, &capacity, view->used + extra, 1);
    if (error)
        return error;
    if (capacity == view->room)
        return 0;
    uint8_t *again = realloc(view->again, capacity);
    if (!again)
        return -ENOMEM;
    view->again = again;
    view->room = capacity;
    return 0;
}

static struct piece *piece_add(struct view *view, enum piece_rank rank, remote_addr address,
                               size_t size)
{
    if (view->count == PIECE_LIMIT || array_grow(&view->pieces, &view->capacity, view->count + 1,
                                                 sizeof *view->pieces))
        return NULL;
    if (2 * (view->count + 1) > view->slot_count && slots_rebuild(view, view->count + 1))
        return NULL;
    if (bytes_reserve(view, size) || (rank == PIECE_CHUNK && chunks_add(view, view->count)))
        return NULL;
    struct piece *piece = &view->pieces[view->count++];
    *piece = (struct piece){ address, (uint32_t)size, (uint32_t)view->used, view->moment, rank };
    view->used += size;
    view->slots[slot_of(view, address)] = (uint32_t)view->count;
    return piece;
}

/* Drops what was of no use lately and packs the rest, ranks in order. */
static int pieces_pack(struct view *view)
{
    size_t stale = 0;
    bool ordered = true;
    for (size_t i = 0; i < view->count; i++) {
        stale += view->moment - view->pieces[i].last_used > IDLE_MOMENTS;
        ordered = ordered && (i == 0 || view->pieces[i - 1].rank <= view->pieces[i].rank);
    }
    if (!stale && ordered)
        return 0;

    AUTO_FREE struct piece *old = malloc(view->count * sizeof *old);
    if (!old)
        return -ENOMEM;
    memcpy(old, view->pieces, view->count * sizeof *old);
    size_t kept = 0, used = 0;
    view->chunk_count = 0;
    for (unsigned rank = 0; rank < PIECE_RANKS; rank++) {
        for (size_t i = 0; i < view->count; i++) {
            if (old[i].rank != rank || view->moment - old[i].last_used > IDLE_MOMENTS)
                continue;
            view->pieces[kept] = old[i];
            view->pieces[kept].at = (uint32_t)used;
            used += old[i].size;
            if (rank == PIECE_CHUNK)
                view->chunks[view->chunk_count++] = (uint32_t)kept;
            kept++;
        }
    }
    view->count = kept;
    view->used = used;
    return slots_rebuild(view, kept);
}

static void piece_drop(struct view *view, size_t index)
{
    view->pieces[index].last_used = view->moment - IDLE_MOMENTS - 1;
    view->pieces[index].size = 0;
}

static size_t vector_fill(struct view *view, uint8_t *bytes, size_t from, size_t at)
{
    for (size_t i = from; i < view->count; i++, at++) {
        const struct piece *piece = &view->pieces[i];
        view->vector[at] = (struct remote_piece){ piece->address, bytes + piece->at, piece->size };
    }
    return at;
}

/* The second copy is read from the end: what says where the stack begins is looked at first and last. */
static size_t vector_fill_again(struct view *view, size_t at)
{
    for (size_t i = view->count; i-- > 0;) {
        const struct piece *piece = &view->pieces[i];
        if (piece->rank < PIECE_CODE)
            view->vector[at++] =
                (struct remote_piece){ piece->address, view->again + piece->at, piece->size };
    }
    return at;
}

/* One vector; a piece that has become unreadable is dropped and the rest read without it. */
static int vector_read(struct view *view, struct remote *memory, unsigned copies)
{
    int error = array_grow(&view->vector, &view->vector_capacity, 2 * view->count + 2,
                           sizeof *view->vector);
    size_t from = 0;
    while (!error && from < view->count) {
        size_t count = vector_fill(view, view->bytes, from, 0);
        if (copies > 1)
            count = vector_fill_again(view, count);
        int whole = memory->read_pieces(memory, view->vector, count, NULL);
        if (whole < 0)
            return whole;
        if ((size_t)whole >= count)
            return 0;
        if ((size_t)whole >= view->count - from)
            return -EAGAIN; /* readable a microsecond ago, gone at the second look */
        from += (size_t)whole;
        piece_drop(view, from++);
    }
    return error;
}

int view_refill(struct view *view, struct remote *memory, unsigned copies)
{
    view->moment++;
    view->grown = copies < 2;
    int error = pieces_pack(view);
    if (error)
        return error;
    return vector_read(view, memory, copies);
}

int view_read_again(struct view *view, struct remote *memory)
{
    int error = array_grow(&view->vector, &view->vector_capacity, 2 * view->count + 2,
                           sizeof *view->vector);
    if (error)
        return error;
    size_t count = vector_fill_again(view, 0);
    int whole = memory->read_pieces(memory, view->vector, count, NULL);
    if (whole < 0)
        return whole;
    view->grown = false;
    return (size_t)whole == count ? 0 : -EAGAIN;
}

static bool piece_holds(const struct piece *piece, remote_addr address, size_t size)
{
    return address >= piece->address && address - piece->address <= piece->size &&
           piece->size - (address - piece->address) >= size;
}

static struct piece *chunk_find(struct view *view, remote_addr address, size_t size)
{
    for (size_t i = 0; i < view->chunk_count; i++) {
        size_t index = (view->last_chunk + i) % view->chunk_count;
        struct piece *piece = &view->pieces[view->chunks[index]];
        if (piece_holds(piece, address, size)) {
            view->last_chunk = index;
            return piece;
        }
    }
    return NULL;
}

static struct piece *piece_find(struct view *view, remote_addr address, size_t size)
{
    if (!view->slot_count)
        return NULL;
    uint32_t index = view->slots[slot_of(view, address)];
    if (index && view->pieces[index - 1].size >= size)
        return &view->pieces[index - 1];
    return chunk_find(view, address, size);
}

const void *view_find(struct view *view, remote_addr address, size_t size)
{
    struct piece *piece = piece_find(view, address, size);
    if (!piece)
        return NULL;
    piece->last_used = view->moment;
    return view->bytes + piece->at + (address - piece->address);
}

const void *view_find_again(struct view *view, remote_addr address, size_t size)
{
    const struct piece *piece = view->grown ? NULL : piece_find(view, address, size);
    return piece ? view->again + piece->at + (address - piece->address) : NULL;
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
    int error = remote_read(memory, address, view->bytes + piece->at, size);
    if (error) {
        piece_drop(view, (size_t)(piece - view->pieces));
        *ret_error = error;
        return NULL;
    }
    return view->bytes + piece->at;
}

bool view_has_grown(const struct view *view)
{
    return view->grown;
}
