/* The chunks that hold the frames of plain functions from 3.11 on. */
#include "pyabi/field.h"
#include "pyabi/walk.h"
#include "sampler/base/error.h"

enum {
    CHUNK_SIZE_MAX = 64 << 20,
    CHUNK_COUNT_MAX = 1 << 14,
    CHUNK_SLACK = 1024, /* predicted beyond the present top: the next stack may be deeper */
    FRAME_BYTES =
        512, /* chunks are fetched for as many frames of that size as are walked at most */
};

/* Live bytes of an older chunk, as its own header says; 0 when that makes no sense. */
static size_t older_chunk_size(struct walk *walk, remote_addr chunk)
{
    const struct py_layout *layout = walk->layout;
    uint8_t copy[64];
    const uint8_t *header = view_find(walk->view, chunk, layout->chunk.size);
    if (!header) {
        if (layout->chunk.size > sizeof copy ||
            remote_read(walk->source, chunk, copy, layout->chunk.size))
            return 0;
        header = copy;
    }
    uint64_t top = field_u64(header, layout->chunk.top);
    return top > CHUNK_SIZE_MAX / 8 ? 0 : offset_of(layout->chunk.data) + 8 * (size_t)top;
}

/*
 * The chunks of the data stack that are not yet among the view's pieces, each in one read. Only a
 * help: frames that are not found in a chunk are read one by one, so nothing here is an error.
 */
void walk_fetch_chunks(struct walk *walk)
{
    const struct py_layout *layout = walk->layout;
    const uint8_t *state = view_find(walk->view, walk->thread->state, layout->thread.size);
    if (!state || !offset_present(layout->thread.datastack_chunk))
        return;
    remote_addr chunk = field_address(state, layout->thread.datastack_chunk);
    remote_addr top = field_address(state, layout->thread.datastack_top);
    size_t size = top > chunk && top - chunk < CHUNK_SIZE_MAX ? (size_t)(top - chunk) : 0;
    size_t room = FRAME_BYTES * walk->frames_max;

    for (unsigned i = 0; chunk && size >= layout->chunk.size && i < CHUNK_COUNT_MAX; i++) {
        int error = 0;
        if (size > room)
            return;
        room -= size;
        const uint8_t *header = view_find(walk->view, chunk, size);
        if (!header && i == 0)
            header = view_fetch(walk->view, walk->source, PIECE_CHUNK, chunk, size + CHUNK_SLACK,
                                &error);
        if (!header)
            header = view_fetch(walk->view, walk->source, PIECE_CHUNK, chunk, size, &error);
        if (!header)
            return;
        chunk = field_address(header, layout->chunk.previous);
        size = chunk ? older_chunk_size(walk, chunk) : 0;
    }
}

/*
 * Frames that a thread owns lie one behind the other in the data stack: each begins where the next
 * outer one of them in the same chunk ends. A link left over from an earlier call does not keep to
 * that.
 */
int walk_check_data_stack(const struct walk *walk)
{
    const struct python *python = walk->python;
    const struct walked_frame *inner = NULL;
    if (!offset_present(walk->layout->thread.datastack_chunk))
        return 0;
    for (size_t i = 0; i < python->walked_count; i++) {
        const struct walked_frame *outer = &python->walked[i];
        if (outer->is_shim || outer->owner != 0)
            continue;
        remote_addr end = outer->address + 8 * (remote_addr)outer->entry->frame_words;
        if (inner && inner->address > outer->address && inner->address < end)
            return -EAGAIN;
        inner = outer;
    }
    return 0;
}
