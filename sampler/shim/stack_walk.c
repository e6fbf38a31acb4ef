#include "sampler/shim/stack_walk.h"

#include "sampler/shim/codes.h"

enum {
    LEFT_OUT_MAX = UINT16_MAX,
    BELOW_ANY_OBJECT = 4096,
    CODE_UNIT = 2, /* bytes that an instruction takes at least */
};

static bool pointer_plausible(const void *pointer)
{
    return (uintptr_t)pointer >= BELOW_ANY_OBJECT && (uintptr_t)pointer % sizeof(void *) == 0 &&
           (uintptr_t)pointer <= UINTPTR_MAX / 2; /* beyond is the kernel's */
}

static const uint8_t *frame_innermost(const struct ring_python *layout, struct field_reader *reader,
                                      const uint8_t *state)
{
    if (layout->thread_frame != RING_ABSENT)
        return field_pointer(reader, state + layout->thread_frame);
    const uint8_t *cframe = field_pointer(reader, state + layout->thread_cframe);
    return pointer_plausible(cframe) ? field_pointer(reader, cframe + layout->cframe_current_frame)
                                     : NULL;
}

static const uint8_t *frame_code(const struct ring_python *layout, struct field_reader *reader,
                                 const uint8_t *frame)
{
    uintptr_t tagged = (uintptr_t)field_pointer(reader, frame + layout->frame_code);
    return (const uint8_t *)(tagged & ~(uintptr_t)layout->reference_tag_mask);
}

/* Frames that are no function, but mark where an evaluation of the C loop began. */
static bool frame_is_shim(const struct ring_python *layout, struct field_reader *reader,
                          const uint8_t *frame)
{
    return layout->shim_owners &&
           layout->shim_owners >> (field_u8(reader, frame + layout->frame_owner) & 7) & 1;
}

/* Where the bytecode stands that the frame runs: a thread of a free-threaded build may have its own
 * copy of it. */
static const uint8_t *bytecode_start(const struct ring_python *layout, struct field_reader *reader,
                                     const uint8_t *frame, const uint8_t *code)
{
    uint32_t copy = layout->frame_tlbc_index == RING_ABSENT
                        ? 0
                        : field_u32(reader, frame + layout->frame_tlbc_index);
    if (!copy)
        return code + layout->code_bytecode_inline;
    const uint8_t *copies = field_pointer(reader, code + layout->code_tlbc);
    if (!pointer_plausible(copies) || copy >= field_u64(reader, copies + layout->tlbc_array_size))
        return NULL;
    return field_pointer(reader, copies + layout->tlbc_entries + sizeof(void *) * copy);
}

static int64_t frame_offset(const struct ring_python *layout, struct field_reader *reader,
                            const uint8_t *frame, const uint8_t *code)
{
    if (layout->frame_instruction == RING_ABSENT)
        return (int32_t)field_u32(reader, frame + layout->frame_position) * layout->position_unit;
    const uint8_t *start = bytecode_start(layout, reader, frame, code);
    const uint8_t *at = field_pointer(reader, frame + layout->frame_instruction);
    return start ? at - start : 0;
}

static bool code_plausible(const struct python *python, struct field_reader *reader,
                           const uint8_t *code)
{
    return pointer_plausible(code) &&
           (!reader->careful ||
            field_pointer(reader, code + python->layout->object_type) == python->code_type);
}

/* A pointer, as it is from 3.11 on, is into the code's own instructions, or just before them. */
static bool offset_plausible(const struct ring_python *layout, struct field_reader *reader,
                             const uint8_t *code, int64_t offset)
{
    if (!reader->careful || layout->frame_instruction == RING_ABSENT)
        return true;
    uint64_t units = field_u64(reader, code + layout->object_var_size);
    return offset >= -CODE_UNIT && offset <= CODE_UNIT * (int64_t)(units & INT32_MAX);
}

static void frame_add(const struct python *python, struct field_reader *reader,
                      const uint8_t *frame, code_namer name, struct walked_stack *stack)
{
    const struct ring_python *layout = python->layout;
    const uint8_t *code = frame_code(layout, reader, frame);
    if (!code_plausible(python, reader, code))
        return;
    int64_t offset = frame_offset(layout, reader, frame, code);
    if (!offset_plausible(layout, reader, code, offset))
        return;
    if (stack->count == RING_FRAMES) {
        stack->left_out += stack->left_out < LEFT_OUT_MAX;
        return;
    }
    uint32_t id = name(layout, reader, code);
    if (id == CODE_INTERNAL)
        return;
    stack->frames[stack->count++] =
        (struct record_frame){ .code_id = id, .offset = (int32_t)offset };
}

void stack_walk(const struct python *python, const void *state, struct field_reader *reader,
                code_namer name, struct walked_stack *ret)
{
    const struct ring_python *layout = python->layout;
    ret->count = ret->left_out = 0;
    const uint8_t *frame = frame_innermost(layout, reader, state);
    for (int i = 0; i < RING_FRAMES + LEFT_OUT_MAX && pointer_plausible(frame); i++) {
        if (!frame_is_shim(layout, reader, frame))
            frame_add(python, reader, frame, name, ret);
        frame = field_pointer(reader, frame + layout->frame_previous);
    }
    if (reader->failed || (reader->careful && frame && !pointer_plausible(frame)))
        ret->count = ret->left_out = 0;
}
