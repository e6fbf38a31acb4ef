#include "sampler/shim/stack_walk.h"

#include "sampler/shim/codes.h"
#include "sampler/shim/field.h"

enum {
    LEFT_OUT_MAX = UINT16_MAX,
    BELOW_ANY_OBJECT = 4096,
};

static bool pointer_plausible(const void *pointer)
{
    return (uintptr_t)pointer >= BELOW_ANY_OBJECT && (uintptr_t)pointer % sizeof(void *) == 0;
}

static const uint8_t *frame_innermost(const struct ring_python *layout, const uint8_t *state)
{
    if (layout->thread_frame != RING_ABSENT)
        return field_pointer(state + layout->thread_frame);
    const uint8_t *cframe = field_pointer(state + layout->thread_cframe);
    return pointer_plausible(cframe) ? field_pointer(cframe + layout->cframe_current_frame) : NULL;
}

static const uint8_t *frame_code(const struct ring_python *layout, const uint8_t *frame)
{
    uintptr_t tagged = (uintptr_t)field_pointer(frame + layout->frame_code);
    return (const uint8_t *)(tagged & ~(uintptr_t)layout->reference_tag_mask);
}

/* Frames that are no function, but mark where an evaluation of the C loop began. */
static bool frame_is_shim(const struct ring_python *layout, const uint8_t *frame)
{
    return layout->shim_owners && layout->shim_owners >> (frame[layout->frame_owner] & 7) & 1;
}

/* Where the bytecode stands that the frame runs: a thread of a free-threaded build may have its own
 * copy of it. */
static const uint8_t *bytecode_start(const struct ring_python *layout, const uint8_t *frame,
                                     const uint8_t *code)
{
    uint32_t copy =
        layout->frame_tlbc_index == RING_ABSENT ? 0 : field_u32(frame + layout->frame_tlbc_index);
    if (!copy)
        return code + layout->code_bytecode_inline;
    const uint8_t *copies = field_pointer(code + layout->code_tlbc);
    if (!pointer_plausible(copies) || copy >= field_u64(copies + layout->tlbc_array_size))
        return NULL;
    return field_pointer(copies + layout->tlbc_entries + sizeof(void *) * copy);
}

static int32_t frame_offset(const struct ring_python *layout, const uint8_t *frame,
                            const uint8_t *code)
{
    if (layout->frame_instruction == RING_ABSENT)
        return (int32_t)field_u32(frame + layout->frame_position) * layout->position_unit;
    const uint8_t *start = bytecode_start(layout, frame, code);
    const uint8_t *at = field_pointer(frame + layout->frame_instruction);
    return start ? (int32_t)(at - start) : 0;
}

static void frame_add(const struct ring_python *layout, const uint8_t *frame, code_namer name,
                      struct walked_stack *stack)
{
    const uint8_t *code = frame_code(layout, frame);
    if (!pointer_plausible(code))
        return;
    if (stack->count == RING_FRAMES) {
        stack->left_out += stack->left_out < LEFT_OUT_MAX;
        return;
    }
    uint32_t id = name(layout, code);
    if (id == CODE_INTERNAL)
        return;
    stack->frames[stack->count++] =
        (struct record_frame){ .code_id = id, .offset = frame_offset(layout, frame, code) };
}

void stack_walk(const struct ring_python *layout, const void *state, code_namer name,
                struct walked_stack *ret)
{
    ret->count = ret->left_out = 0;
    const uint8_t *frame = frame_innermost(layout, state);
    for (int i = 0; i < RING_FRAMES + LEFT_OUT_MAX && pointer_plausible(frame); i++) {
        if (!frame_is_shim(layout, frame))
            frame_add(layout, frame, name, ret);
        frame = field_pointer(frame + layout->frame_previous);
    }
}
