/* In which order the bytes of all looks are asked for, in one vector. */
#include "pyabi/view_looks.h"

#include "pyabi/array.h"
#include "sampler/base/error.h"

#include <stdlib.h>

static int segment_compare(const void *a, const void *b)
{
    const struct segment *left = a, *right = b;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return left->turn < right->turn ? -1 : left->turn > right->turn;
}

/*
 * A frame next to its caller, as the last walk met them: they are looked at so soon after each
 * other that hardly a program can move to and fro between the two at every look, and seem to agree.
 */
static void segments_order(struct view *view)
{
    if (view->look_count < VIEW_LOOKS_SCATTERED || view->segment_count == 0)
        return;
    for (size_t i = 0; i < view->segment_count; i++) {
        struct segment *segment = &view->segments[i];
        segment->turn = UINT64_MAX;
        for (size_t j = segment->first_piece; j < segment->end_piece; j++)
            if (view->pieces[j].turn >= view->walk_start && view->pieces[j].turn < segment->turn)
                segment->turn = view->pieces[j].turn;
    }
    qsort(view->segments, view->segment_count, sizeof *view->segments, segment_compare);
}

/* Its pieces are read one by one from the next moment on, or not at all. */
static void segment_drop(struct view *view, size_t index)
{
    struct segment *segment = &view->segments[index];
    for (size_t i = segment->first_piece; i < segment->end_piece; i++)
        view->pieces[i].size = 0;
    segment->size = 0;
    view->packed = SIZE_MAX; /* pack at the next moment */
}

static size_t vector_add(struct view *view, unsigned look, size_t index, size_t at)
{
    const struct segment *segment = &view->segments[index];
    view->vector[at] =
        (struct remote_piece){ segment->address, view->looks[look] + segment->at, segment->size };
    return at + 1;
}

static size_t segments_below(const struct view *view, enum piece_rank rank)
{
    size_t end = 0;
    while (end < view->segment_count && view->segments[end].rank < rank)
        end++;
    return end;
}

/*
 * All looks, behind the `at` pieces that are there already. What says where the stack begins is
 * asked first and last of all, and code once, in between: it keeps the looks apart. They go to and
 * fro, out of step: a program whose calls take as long as a look, or two, would else be met at the
 * same places at each (of all orders this one leaves the fewest such rhythms).
 */
static size_t vector_plan(struct view *view, size_t at)
{
    static const bool back[VIEW_LOOKS_SCATTERED] = { false, true, true, false, true };
    size_t head = segments_below(view, PIECE_HEAD), stack = segments_below(view, PIECE_CHUNK);
    size_t code = segments_below(view, PIECE_CODE);
    unsigned last = view->look_count - 1;
    size_t parts = last ? last : 1, next_code = code;
    for (size_t i = 0; i < code; i++)
        at = vector_add(view, 0, i, at);
    for (size_t part = 1; part <= parts; part++) {
        size_t code_end = code + (view->segment_count - code) * part / parts;
        size_t start = part == last ? head : stack, end = part <= last ? code : start;
        while (next_code < code_end)
            at = vector_add(view, 0, next_code++, at);
        for (size_t i = start; i < end; i++)
            at = vector_add(view, (unsigned)part, back[part] ? start + end - 1 - i : i, at);
    }
    return at;
}

static int vector_reserve(struct view *view, size_t others)
{
    return array_reserve(&view->vector, &view->vector_capacity,
                         others + view->look_count * view->segment_count + 1, sizeof *view->vector);
}

static bool is_look_at(const struct view *view, unsigned look, size_t index,
                       const struct remote_piece *piece)
{
    return piece->into == view->looks[look] + view->segments[index].at;
}

/* A segment that has become unreadable is left out of the looks that follow. False: it was readable
 * a microsecond ago, at the first look. */
static bool vector_drop(struct view *view, size_t at, size_t count)
{
    size_t index = 0;
    while (index < view->segment_count && !is_look_at(view, 0, index, &view->vector[at]))
        index++;
    if (index == view->segment_count)
        return false;
    segment_drop(view, index);
    for (; at < count; at++)
        for (unsigned look = 0; look < view->look_count; look++)
            if (is_look_at(view, look, index, &view->vector[at]))
                view->vector[at].size = 0;
    return true;
}

int view_read_looks(struct view *view, struct remote *memory, const struct remote_piece *others,
                    size_t other_count)
{
    segments_order(view);
    int error = vector_reserve(view, other_count);
    if (error)
        return error;
    for (size_t i = 0; i < other_count; i++)
        view->vector[i] = others[i];
    size_t count = vector_plan(view, other_count);
    for (size_t done = 0; done < count;) {
        int whole = memory->read_pieces(memory, view->vector + done, count - done, NULL);
        if (whole < 0)
            return whole;
        done += (size_t)whole;
        if (done < other_count)
            return -EFAULT;
        if (done < count && !vector_drop(view, done, count))
            return -EAGAIN;
    }
    return 0;
}
