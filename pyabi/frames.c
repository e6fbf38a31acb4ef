/*
 * From a thread state to its Python frames. The thread may be running: every rule below that a
 * whole stack keeps is checked, and what breaks one is torn, never shown.
 */
#include "pyabi/field.h"
#include "pyabi/walk.h"
#include "sampler/base/cleanup.h"

#include <string.h>

/* ---- where the stack begins ---- */

static int head_read(struct walk *walk)
{
    const struct py_layout *layout = walk->layout;
    bool tells_head = offset_present(layout->thread.frame);
    int error = 0;
    const uint8_t *state =
        view_fetch(walk->view, walk->source, tells_head ? PIECE_HEAD : PIECE_THREAD,
                   walk->thread->state, layout->thread.size, &error);
    if (!state)
        return error;
    /* a thread that ended leaves its state to one that begins */
    if (field_u64(state, layout->thread.ident) != walk->thread->ident)
        return -ESRCH;
    if (offset_present(layout->thread.cframe))
        walk->cframe = field_address(state, layout->thread.cframe);
    if (tells_head) {
        walk->head = field_address(state, layout->thread.frame);
        return 0;
    }
    const uint8_t *cframe =
        view_fetch(walk->view, walk->source, PIECE_HEAD, walk->cframe, layout->cframe.size, &error);
    if (!cframe)
        return error;
    walk->head = field_address(cframe, layout->cframe.current_frame);
    return 0;
}

/* The counter that moves when a code object is freed: while it stands, cached code needs no other
 * proof. */
static int generation_read(struct walk *walk)
{
    int error = 0;
    if (!offset_present(walk->layout->interp.code_generation))
        return 0;
    remote_addr at = walk->thread->interpreter + offset_of(walk->layout->interp.code_generation);
    const void *bytes = view_fetch(walk->view, walk->source, PIECE_THREAD, at, 8, &error);
    if (!bytes)
        return error;
    memcpy(&walk->generation, bytes, 8);
    walk->generation++; /* the target's first generation is 0, which means "none" to the cache */
    return 0;
}

/* ---- one frame ---- */

static uint64_t position_read(const struct py_layout *layout, const uint8_t *bytes)
{
    if (offset_present(layout->frame.instruction))
        return field_u64(bytes, layout->frame.instruction);
    return field_u32(bytes, layout->frame.position);
}

/* The code object, or whatever stands in its place, without the tag bits of a stack reference. */
static remote_addr code_read(const struct py_layout *layout, const uint8_t *bytes)
{
    return field_address(bytes, layout->frame.code) & ~(remote_addr)layout->reference_tag_mask;
}

/* A frame that runs belongs to a frame object or generator that says so. */
static bool frame_is_executing(const struct walk *walk, const uint8_t *bytes, uint8_t owner)
{
    const struct py_layout *layout = walk->layout;
    if (offset_present(layout->frame.executing))
        return (int8_t)bytes[offset_of(layout->frame.executing)] == layout->executing;
    if (walk->lead && owner == layout->generator_owner)
        return (int8_t)bytes[-(ptrdiff_t)walk->lead] == layout->executing;
    return true;
}

static const uint8_t *frame_bytes(struct walk *walk, remote_addr address, int *ret_error)
{
    size_t size = walk->lead + walk->layout->frame.size;
    const uint8_t *bytes =
        view_fetch(walk->view, walk->source, PIECE_FRAME, address - walk->lead, size, ret_error);
    return bytes ? bytes + walk->lead : NULL;
}

static int frame_read(struct walk *walk, remote_addr address, struct walked_frame *ret)
{
    const struct py_layout *layout = walk->layout;
    int error = 0;
    if (address % 8)
        return -EBADMSG;
    const uint8_t *bytes = frame_bytes(walk, address, &error);
    if (!bytes)
        return error;
    *ret = (struct walked_frame){ .address = address };
    ret->previous = field_address(bytes, layout->frame.previous);
    ret->code = code_read(layout, bytes);
    ret->position = position_read(layout, bytes);
    if (offset_present(layout->frame.tlbc_index))
        ret->tlbc_index = field_u32(bytes, layout->frame.tlbc_index);
    if (offset_present(layout->frame.is_entry))
        ret->is_entry = bytes[offset_of(layout->frame.is_entry)];
    else if (!layout->shim_owners)
        ret->is_entry = true;
    if (offset_present(layout->frame.owner))
        ret->owner = bytes[offset_of(layout->frame.owner)];
    if (ret->owner > layout->highest_owner)
        return -EBADMSG;
    ret->is_shim = layout->shim_owners >> ret->owner & 1;
    /* A thread that stands still may be just about to start its innermost frame, or to leave it.
     * But a generator that is being left may have lost its link already. */
    bool may_rest = ret->is_shim || (walk->moment != MOMENT_RUNNING && address == walk->head &&
                                     (!walk->lead || ret->owner != layout->generator_owner));
    return may_rest || frame_is_executing(walk, bytes, ret->owner) ? 0 : -EAGAIN;
}

/* ---- the chain ---- */

/* Links that go in a circle come back to a frame that is compared with twice as many others each
 * time (Brent). */
static int chain_walk(struct walk *walk)
{
    struct python *python = walk->python;
    remote_addr landmark = walk->head;
    size_t next_landmark = 1;
    python->walked_count = 0;
    for (remote_addr at = walk->head; at;) {
        if (python->walked_count == walk->frames_max) {
            walk->truncated = true;
            return 0;
        }
        int error = array_reserve(&python->walked, &python->walked_capacity,
                                  python->walked_count + 1, sizeof *python->walked);
        struct walked_frame *frame = &python->walked[python->walked_count];
        if (!error)
            error = frame_read(walk, at, frame);
        if (error)
            return error;
        python->walked_count++;
        at = frame->previous;
        if (at == landmark)
            return -EBADMSG;
        if (python->walked_count == next_landmark) {
            landmark = at;
            next_landmark *= 2;
        }
    }
    return 0;
}

/* A whole chain ends where an evaluation of the C loop began; a frame that is half linked does not.
 */
static int chain_end_check(const struct walk *walk)
{
    const struct python *python = walk->python;
    if (!python->walked_count || walk->truncated)
        return 0;
    const struct walked_frame *last = &python->walked[python->walked_count - 1];
    bool ends = walk->layout->shim_owners ? last->is_shim : last->is_entry;
    return ends ? 0 : -EAGAIN;
}

/* ---- code ---- */

/* Where a thread of a free-threaded build has its own copy of the bytecode. 0 when it makes no
 * sense. */
static remote_addr tlbc_start(struct walk *walk, const struct walked_frame *frame)
{
    const struct py_layout *layout = walk->layout;
    remote_addr array = 0, start = 0;
    uint64_t size = 0;
    if (remote_read(walk->source, frame->code + offset_of(layout->code.tlbc), &array, 8) ||
        !array || remote_read(walk->source, array + offset_of(layout->tlbc.array_size), &size, 8) ||
        frame->tlbc_index >= size)
        return 0;
    remote_addr entry =
        array + offset_of(layout->tlbc.entries) + 8 * (remote_addr)frame->tlbc_index;
    return remote_read(walk->source, entry, &start, 8) ? 0 : start;
}

static int offset_find(struct walk *walk, struct walked_frame *frame)
{
    const struct py_layout *layout = walk->layout;
    if (layout->position <= POSITION_LAST_UNIT) {
        int32_t last = (int32_t)frame->position;
        frame->offset = layout->position == POSITION_LAST_UNIT ? 2 * (int64_t)last : last;
        return last < -1 ? -EBADMSG : 0;
    }
    remote_addr start = frame->code + offset_of(layout->code.bytecode_inline);
    if (frame->tlbc_index)
        start = tlbc_start(walk, frame);
    frame->offset = (int64_t)(frame->position - start);
    if (!start || frame->offset < -2 ||
        (frame->entry->bytecode_size && frame->offset > (int64_t)frame->entry->bytecode_size))
        return -EBADMSG;
    return 0;
}

static int codes_resolve(struct walk *walk)
{
    struct python *python = walk->python;
    code_cache_start_walk(python->codes);
    for (size_t i = 0; i < python->walked_count; i++) {
        struct walked_frame *frame = &python->walked[i];
        if (frame->is_shim)
            continue;
        int error = code_cache_find(python->codes, walk->view, python->pages, frame->code,
                                    walk->generation, &frame->entry);
        if (!error && !frame->entry->internal)
            error = offset_find(walk, frame);
        if (error)
            return error;
    }
    /* one address that was two code objects in one walk was read while they changed */
    for (size_t i = 0; i < python->walked_count; i++)
        if (python->walked[i].entry && python->walked[i].entry->retired)
            return -EAGAIN;
    return 0;
}

/* It stands where its instruction is done with pushing a frame: that is the one above it. */
static bool has_pushed(struct walk *walk, const struct walked_frame *caller)
{
    for (const struct push_opcode *row = walk->layout->push_opcodes; row->opcode; row++) {
        uint8_t opcode;
        remote_addr at = caller->position - 2 * (remote_addr)row->caches;
        if (caller->offset >= 2 * row->caches &&
            remote_read(walk->source, at, &opcode, sizeof opcode) == 0 && opcode == row->opcode)
            return true;
    }
    return false;
}

/* Frames of functions lie one behind the other; those of generators lie elsewhere. */
static bool lies_behind_callers(const struct walk *walk)
{
    const struct walked_frame *frames = walk->python->walked;
    size_t at = 1, count = walk->python->walked_count;
    while (at < count && (frames[at].is_shim || frames[at].owner == walk->layout->generator_owner))
        at++;
    return at < count &&
           frames[0].address == frames[at].address + 8 * (remote_addr)frames[at].entry->frame_words;
}

/*
 * A frame that has not run an instruction yet may still bear the link of the one that stood in its
 * place before: some builds store it last, when the frame is the innermost already. Where releases
 * write down every instruction, such a frame is let begin first, unless whom it names as its caller
 * has just called and it lies where a callee does: letting it run each time would favour code that
 * calls little.
 */
static bool innermost_is_linked(struct walk *walk)
{
    const struct python *python = walk->python;
    if (walk->layout->position != POSITION_BEFORE_NEXT || !python->walked_count)
        return true;
    const struct walked_frame *innermost = &python->walked[0];
    if (innermost->is_shim || innermost->entry->internal || innermost->offset >= 0)
        return true;
    return python->walked_count > 1 && !innermost->is_entry && !python->walked[1].is_shim &&
           has_pushed(walk, &python->walked[1]) && lies_behind_callers(walk);
}

/* ---- two looks ---- */

static bool head_unmoved(const struct walk *walk, unsigned look)
{
    const struct py_layout *layout = walk->layout;
    bool tells_head = offset_present(layout->thread.frame);
    remote_addr at = tells_head ? walk->thread->state : walk->cframe;
    size_t size = tells_head ? layout->thread.size : layout->cframe.size;
    struct py_offset field = tells_head ? layout->thread.frame : layout->cframe.current_frame;
    const uint8_t *bytes = view_find_again(walk->view, look, at, size);
    return bytes && field_address(bytes, field) == walk->head;
}

/* The innermost frame may have gone on within its code; the others may not. */
static bool frame_unmoved(const struct walk *walk, unsigned look, const struct walked_frame *frame,
                          bool innermost)
{
    const struct py_layout *layout = walk->layout;
    const uint8_t *bytes = view_find_again(walk->view, look, frame->address - walk->lead,
                                           walk->lead + layout->frame.size);
    if (!bytes)
        return false;
    bytes += walk->lead;
    return field_address(bytes, layout->frame.previous) == frame->previous &&
           code_read(layout, bytes) == frame->code &&
           (innermost || position_read(layout, bytes) == frame->position) &&
           (frame->is_shim || frame_is_executing(walk, bytes, frame->owner));
}

/* A frame that has returned keeps its bytes but has its stack pointer put back; one that runs has
 * it taken. */
static bool innermost_alive(struct walk *walk)
{
    const struct py_layout *layout = walk->layout;
    if (!offset_present(layout->frame.stacktop) || !walk->python->walked_count)
        return true;
    int error = 0;
    const uint8_t *bytes = frame_bytes(walk, walk->head, &error);
    return bytes && (int32_t)field_u32(bytes, layout->frame.stacktop) == -1;
}

static bool look_agrees(const struct walk *walk, unsigned look)
{
    const struct python *python = walk->python;
    bool innermost = true;
    for (size_t i = 0; i < python->walked_count; i++) {
        if (!frame_unmoved(walk, look, &python->walked[i], innermost))
            return false;
        innermost = innermost && python->walked[i].is_shim;
    }
    return true;
}

static int looks_check(struct walk *walk)
{
    if (!innermost_alive(walk))
        return -EAGAIN;
    for (unsigned look = 1; look < walk->looks; look++)
        if (!look_agrees(walk, look))
            return -EAGAIN;
    return head_unmoved(walk, walk->looks - 1) ? 0 : -EAGAIN;
}

/* ---- the whole ---- */

static uint64_t shape_add(uint64_t shape, uint64_t value)
{
    return (shape ^ value) * 0x9E3779B97F4A7C15u + (shape >> 29);
}

static uint64_t stack_shape(const struct python *python)
{
    uint64_t shape = python->walked_count;
    bool innermost = true;
    for (size_t i = 0; i < python->walked_count; i++) {
        const struct walked_frame *walked = &python->walked[i];
        shape = shape_add(shape_add(shape, walked->address), walked->code);
        if (!innermost)
            shape = shape_add(shape, walked->position);
        innermost = innermost && walked->is_shim;
    }
    return shape;
}

static int stack_publish(struct walk *walk, struct py_stack *ret)
{
    struct python *python = walk->python;
    size_t count = 0, gc_index = 0;
    bool gc_found = walk->gc_frame == 0;
    int error = array_reserve(&python->frames, &python->frame_capacity, python->walked_count + 1,
                              sizeof *python->frames);
    if (error)
        return error;
    for (size_t i = 0; i < python->walked_count; i++) {
        const struct walked_frame *walked = &python->walked[i];
        if (walked->is_shim)
            continue;
        if (walked->entry->internal) {
            /* a trampoline that began an evaluation hands that on to the frame it called */
            if (walked->is_entry && count) {
                python->frames[count - 1].is_entry = true;
                python->frames[count - 1].anchor = walked->anchor;
            }
            continue;
        }
        if (walked->address == walk->gc_frame) {
            gc_index = count;
            gc_found = true;
        }
        python->frames[count++] = (struct py_frame){
            walked->address, walked->entry, walked->offset, walked->is_entry, walked->anchor,
        };
    }
    *ret = (struct py_stack){
        .frames = python->frames,
        .count = count,
        .truncated = walk->truncated,
        .holds_gil = walk->holds_gil,
        .collecting = walk->collecting && gc_found,
        .gc_index = gc_index,
        .shape = walk->moment == MOMENT_RUNNING ? stack_shape(python) : 0,
    };
    return 0;
}

static size_t generator_lead(const struct py_layout *layout)
{
    if (!offset_present(layout->generator.frame_inline))
        return 0;
    return offset_of(layout->generator.frame_inline) - offset_of(layout->generator.frame_state);
}

/* From what the view holds, and what it lacks, to frames with their code. */
static int stack_walk(struct walk *walk)
{
    int error = head_read(walk);
    if (!error)
        error = generation_read(walk);
    if (error)
        return error;
    if (walk->python->wants & WANT_OWNER)
        walk_read_owner(walk);
    walk_fetch_chunks(walk);
    error = chain_walk(walk);
    if (!error)
        error = chain_end_check(walk);
    if (!error)
        error = codes_resolve(walk);
    if (!error && walk->moment == MOMENT_STILL && !innermost_is_linked(walk))
        error = -EAGAIN;
    return error ? error : walk_check_data_stack(walk);
}

unsigned python_running_looks(const struct python *python, const struct view *view)
{
    bool in_chunks = offset_present(python->layout.thread.datastack_chunk);
    return in_chunks && !view_is_scattered(view) ? VIEW_LOOKS : VIEW_LOOKS_SCATTERED;
}

/* Was it looked at when the round began? Such looks are believed once. */
static bool was_ahead(struct python *python, const struct view *view, bool running)
{
    bool is_it = python->ahead == view;
    if (is_it)
        python->ahead = NULL;
    return is_it && running;
}

int python_read_stack(struct python *python, const struct py_thread *thread, struct view *view,
                      enum py_moment moment, struct py_stack *ret)
{
    page_cache_forget(python->pages);
    struct walk walk = {
        .python = python,
        .layout = &python->layout,
        .thread = thread,
        .view = view,
        .moment = moment,
        .looks = 1,
        .frames_max = python->wants & WANT_DEPTH ? FRAMES_MAX : FRAMES_BRIEF,
        .source = page_cache_remote(python->pages),
        .lead = generator_lead(&python->layout),
    };
    bool running = moment == MOMENT_RUNNING;
    unsigned looks = running ? python_running_looks(python, view) : 1;
    int error = was_ahead(python, view, running) ? 0 : view_refill(view, python->memory, looks);
    walk.looks = view_looks(view);
    if (!error)
        error = stack_walk(&walk);
    if (!error && running && view_has_grown(view)) {
        /* now that it is known where to look, look at all of it in one go */
        looks = python_running_looks(python, view);
        error = looks > walk.looks ? view_refill(view, python->memory, looks)
                                   : view_look_again(view, python->memory);
        walk.looks = view_looks(view);
        if (!error)
            error = stack_walk(&walk);
        if (!error && view_has_grown(view))
            error = -EAGAIN;
    }
    if (!error && running)
        error = looks_check(&walk);
    if (error)
        return error;
    walk_find_anchors(&walk);
    return stack_publish(&walk, ret);
}

bool python_frame_calls(const struct py_frame *frame)
{
    return code_is_call(frame->code, frame->offset);
}

struct py_place python_frame_place(const struct python *python, const struct py_frame *frame)
{
    struct code_position position = code_find_position(&python->layout, frame->code, frame->offset);
    return (struct py_place){ frame->code->name, frame->code->filename, position.line,
                              position.column, frame->code->first_line };
}
