/* Where a thread of 3.14 and later looks for a script that it is asked to run. */
#include "pyabi/python.h"

enum { THREAD_ATTACHED = 1 }; /* _Py_THREAD_ATTACHED, Include/internal/pycore_pystate.h */

/*
 * A script would be heard of by who hears of all that Python does, and a hook may forbid it, which
 * Python says on standard error. (Hooks of sys.addaudithook stand where each bug-fix release has
 * them elsewhere.)
 */
static int is_watched(struct python *python, const struct py_thread *thread)
{
    const struct py_layout *layout = &python->layout;
    uint64_t hooks, tracer, profiler;
    struct remote_piece pieces[] = {
        { python->runtime + offset_of(layout->runtime.audit_hooks), &hooks, sizeof hooks },
        { thread->state + offset_of(layout->debugger.tracer), &tracer, sizeof tracer },
        { thread->state + offset_of(layout->debugger.profiler), &profiler, sizeof profiler },
    };
    int error = remote_read_all(python->memory, pieces, sizeof pieces / sizeof *pieces);
    return error ? error : hooks || tracer || profiler;
}

int python_script_place(struct python *python, const struct py_thread *thread,
                        struct py_script_place *ret)
{
    const struct py_layout *layout = &python->layout;
    int32_t enabled = 0, attached = 0;
    if (!offset_present(layout->interp.remote_debug) ||
        !offset_present(layout->debugger.script_path))
        return -ENOTSUP;
    int error =
        remote_read(python->memory, thread->interpreter + offset_of(layout->interp.remote_debug),
                    &enabled, sizeof enabled);
    if (error || enabled != 1)
        return error ? error : -ENOTSUP;
    int watched = is_watched(python, thread);
    if (watched < 0)
        return watched;
    error = remote_read(python->memory, thread->state + offset_of(layout->thread.attach_state),
                        &attached, sizeof attached);
    if (error)
        return error;
    *ret = (struct py_script_place){
        .path = thread->state + offset_of(layout->debugger.script_path),
        .pending = thread->state + offset_of(layout->debugger.pending_call),
        .breaker = thread->state + offset_of(layout->debugger.eval_breaker),
        .bit = layout->script_breaker,
        .yields = layout->yield_breaker,
        .is_attached = attached == THREAD_ATTACHED,
        .is_watched = watched,
    };
    return 0;
}
