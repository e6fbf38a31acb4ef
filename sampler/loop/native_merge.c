#include "sampler/loop/native_merge.h"

#include "sampler/base/error.h"

#include <string.h>

struct merge {
    const struct merge_input *input;
    struct frame_event *out;
    size_t count;
    size_t next; /* the innermost Python frame that has no place yet */
};

static void gc_add(struct merge *merge)
{
    merge->out[merge->count++] = (struct frame_event){ .kind = FRAME_GC, .name = "<GC>" };
}

static void python_add(struct merge *merge, size_t end)
{
    for (; merge->next < end; merge->next++) {
        if (merge->input->stack->collecting && merge->next == merge->input->stack->gc_index)
            gc_add(merge);
        struct py_place place =
            python_frame_place(merge->input->python, &merge->input->stack->frames[merge->next]);
        merge->out[merge->count++] = (struct frame_event){
            .kind = FRAME_PYTHON,
            .name = place.name,
            .file = place.file,
            .line = place.line,
            .column = place.column,
            .first_line = place.first_line,
        };
    }
}

static void native_add(struct merge *merge, const struct native_frame *frame)
{
    struct native_symbol symbol = { 0 };
    native_symbols_find(merge->input->symbols, frame->ip, &symbol);
    merge->out[merge->count++] = (struct frame_event){
        .kind = FRAME_NATIVE,
        .name = symbol.name,
        .file = symbol.file,
        .line = symbol.line,
        .module = symbol.module,
        .ip = frame->ip,
        .offset = symbol.offset,
    };
}

/* One past the outermost frame of the run of frames that begins at `from`. */
static size_t run_end(const struct py_stack *stack, size_t from)
{
    while (from < stack->count && !stack->frames[from].is_entry)
        from++;
    return from < stack->count ? from + 1 : from;
}

/* Does a word of this part of the copied stack hold the value? */
static bool stack_holds(const struct stack_image *image, remote_addr from, remote_addr to,
                        uint64_t value)
{
    if (from < image->stack_start)
        from = image->stack_start;
    for (; from < to && from + 8 <= image->stack_start + image->size; from += 8) {
        uint64_t word;
        memcpy(&word, (const char *)image->bytes + (from - image->stack_start), sizeof word);
        if (word == value)
            return true;
    }
    return false;
}

/*
 * Without an anchor (3.8, 3.9) each frame has an evaluation of its own, which keeps the frame's
 * address on its part of the C stack, or below it where a callee saved the register that held it.
 */
static bool evaluation_holds(const struct merge *merge, size_t at,
                             const struct native_frame *native, const struct native_frame *inner)
{
    remote_addr from = inner ? inner->sp : native->sp;
    return stack_holds(merge->input->image, from, native->cfa,
                       merge->input->stack->frames[at].address);
}

/* How far the Python frames get that belong to this C frame; `next` when none do. */
static size_t native_claims(const struct merge *merge, size_t index)
{
    const struct py_stack *stack = merge->input->stack;
    const struct native_frame *native = &merge->input->native[index];
    for (size_t from = merge->next; from < stack->count;) {
        size_t end = run_end(stack, from);
        remote_addr anchor = stack->frames[end - 1].anchor;
        if (!anchor)
            break;
        if (anchor >= native->cfa)
            return merge->next;
        if (anchor >= native->sp)
            return end;
        from =
            end; /* its C frame was passed over: it comes in here, before what lies further out */
    }
    if (merge->next == stack->count || stack->frames[merge->next].anchor ||
        !native_symbols_is_evaluator(merge->input->symbols, native->ip))
        return merge->next;
    const struct native_frame *inner = index ? native - 1 : NULL;
    for (size_t at = merge->next; at < stack->count && at < merge->next + 8; at++)
        if (evaluation_holds(merge, at, native, inner))
            return run_end(stack, at);
    return run_end(stack, merge->next);
}

int frames_merge(const struct merge_input *input, struct arena *arena,
                 const struct frame_event **ret_frames, bool *ret_placed)
{
    struct merge merge = { .input = input };
    size_t room = input->stack->count + input->native_count + 1;
    merge.out = arena_take(arena, room * sizeof *merge.out);
    if (!merge.out)
        return -ENOMEM;
    for (size_t i = 0; i < input->native_count; i++) {
        size_t end = native_claims(&merge, i);
        if (end > merge.next)
            python_add(&merge, end);
        else if (!native_symbols_is_evaluator(input->symbols, input->native[i].ip))
            native_add(&merge, &input->native[i]);
    }
    *ret_placed = input->native_count && merge.next == input->stack->count;
    python_add(&merge, input->stack->count);
    *ret_frames = merge.out;
    return (int)merge.count;
}
