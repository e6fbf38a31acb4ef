/* Who holds the GIL, and who collects garbage: read as pieces of the same moment as the stack. */
#include "pyabi/field.h"
#include "pyabi/walk.h"

#include <string.h>

enum { THREAD_ATTACHED = 1 }; /* _Py_THREAD_ATTACHED, Include/internal/pycore_pystate.h of 3.13 */

/* A field of a struct that is predicted as a piece of its own; 0 when absent or unreadable. */
static uint64_t owner_field(struct walk *walk, remote_addr base, struct py_offset field,
                            size_t size)
{
    uint64_t value = 0;
    int error = 0;
    if (!base || !offset_present(field))
        return 0;
    const void *bytes =
        view_fetch(walk->view, walk->source, PIECE_THREAD, base + offset_of(field), size, &error);
    if (bytes)
        memcpy(&value, bytes, size);
    return value;
}

static bool collector_runs(struct walk *walk)
{
    const struct py_layout *layout = walk->layout;
    return owner_field(walk, walk->thread->interpreter, layout->interp.gc_collecting, 4) ||
           owner_field(walk, walk->python->runtime, layout->runtime.gc_collecting, 4);
}

/*
 * From 3.15 on the collector names the frame that set it off, and so the thread. Before, whoever
 * has the GIL, or is attached where there is none, runs it.
 */
void walk_read_owner(struct walk *walk)
{
    const struct py_layout *layout = walk->layout;
    const struct py_thread *thread = walk->thread;
    bool runs = false;
    if (thread->gil) {
        int32_t locked = (int32_t)owner_field(walk, thread->gil, layout->gil.locked, 4);
        walk->holds_gil = locked > 0 && owner_field(walk, thread->gil, layout->gil.last_holder,
                                                    8) == thread->state;
        runs = walk->holds_gil;
    } else {
        runs = owner_field(walk, thread->state, layout->thread.attach_state, 4) == THREAD_ATTACHED;
    }
    walk->collecting = collector_runs(walk);
    if (walk->collecting)
        walk->gc_frame = owner_field(walk, thread->interpreter, layout->interp.gc_frame, 8);
    if (!walk->gc_frame)
        walk->collecting = walk->collecting && runs;
}
