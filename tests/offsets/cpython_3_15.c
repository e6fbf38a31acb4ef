/* What the headers of CPython 3.15 say, and with Py_GIL_DISABLED of 3.15t. */
#include "probe.h"

#include "internal/pycore_ceval.h"
#include "internal/pycore_debug_offsets.h"
#include "internal/pycore_dict.h"
#include "internal/pycore_frame.h"
#include "internal/pycore_interp.h"
#include "internal/pycore_interpframe.h"
#include "internal/pycore_moduleobject.h"
#include "internal/pycore_object.h"
#include "internal/pycore_runtime.h"
#include "internal/pycore_stackref.h"

int main(void)
{
#include "rows_debug_offsets.h"
#include "rows_every.h"
#include "rows_own_gil.h"
#include "rows_stack_frames.h"
#include "rows_tagged_frames.h"

    FIELD(interp, gc_frame, PyInterpreterState, gc.frame);
    TOLD_SUM(interp, gc_frame, interpreter_state.gc, gc.frame);

    FIELD(thread, base_frame, PyThreadState, base_frame);
    FIELD(thread, gil_requested, PyThreadState, gil_requested);
    TOLD(thread, base_frame, thread_state.base_frame);
    TOLD(thread, holds_gil, thread_state.holds_gil);
    TOLD(thread, gil_requested, thread_state.gil_requested);

    TOLD(type, size, heap_type_object.size);
    TOLD(type, basicsize, type_object.tp_basicsize);
    TOLD(type, dictoffset, type_object.tp_dictoffset);
    TOLD(type, cached_keys, heap_type_object.ht_cached_keys);

    TOLD(unicode, compact_data, unicode_object.compactunicodeobject_size);
    TOLD(unicode, any, unicode_object.compactunicodeobject_size);

    SHAPE(shim_owners, 1 << FRAME_OWNED_BY_INTERPRETER);
    SHAPE(highest_owner, FRAME_OWNED_BY_INTERPRETER);
    return 0;
}
