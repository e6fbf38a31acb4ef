/* Where each run of the evaluation loop lies on the C stack, of frames that are known to be whole.
 */
#include "pyabi/walk.h"

/* A shim stands on the C stack, in the part of the evaluation that it began. */
static void anchors_from_shims(struct python *python)
{
    for (size_t i = 1; i < python->walked_count; i++) {
        struct walked_frame *inner = &python->walked[i - 1];
        if (python->walked[i].is_shim && !inner->is_shim) {
            inner->is_entry = true;
            inner->anchor = python->walked[i].address;
        }
    }
}

/* Each evaluation keeps a record on the C stack, and the records are a chain of their own. */
static void anchors_from_cframes(struct walk *walk)
{
    struct python *python = walk->python;
    remote_addr cframe = walk->cframe;
    for (size_t i = 0; i < python->walked_count && cframe; i++) {
        if (!python->walked[i].is_entry)
            continue;
        python->walked[i].anchor = cframe;
        remote_addr field = cframe + offset_of(walk->layout->cframe.previous);
        if (remote_read(walk->source, field, &cframe, sizeof cframe))
            return;
    }
}

void walk_find_anchors(struct walk *walk)
{
    if (walk->layout->shim_owners)
        anchors_from_shims(walk->python);
    else if (walk->cframe && (walk->python->wants & WANT_ANCHORS))
        anchors_from_cframes(walk);
}
