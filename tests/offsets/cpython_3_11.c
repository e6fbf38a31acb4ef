/* What the headers of CPython 3.11 say. */
#include "probe.h"

#include "internal/pycore_dict.h"
#include "internal/pycore_frame.h"
#include "internal/pycore_interp.h"
#include "internal/pycore_moduleobject.h"
#include "internal/pycore_object.h"
#include "internal/pycore_runtime.h"

int main(void)
{
#include "rows_every.h"
#include "rows_stack_frames.h"

    FIELD(runtime, finalizing, _PyRuntimeState, _finalizing);
    PLACE(runtime, gil, offsetof(_PyRuntimeState, ceval.gil));
    FIELD(interp, modules, PyInterpreterState, modules);

    FIELD(thread, cframe, PyThreadState, cframe);
    FIELD(cframe, current_frame, _PyCFrame, current_frame);
    FIELD(cframe, previous, _PyCFrame, previous);

    FIELD(frame, code, _PyInterpreterFrame, f_code);
    FIELD(frame, instruction, _PyInterpreterFrame, prev_instr);
    FIELD(frame, is_entry, _PyInterpreterFrame, is_entry);
    FIELD(frame, stacktop, _PyInterpreterFrame, stacktop);

    FIELD(integer, tag, struct _longobject, ob_base.ob_size);
    PLACE(integer, digits, offsetof(struct _longobject, ob_digit));

    SHAPE(free_threaded, 0);
    SHAPE(shim_owners, 0);
    SHAPE(highest_owner, FRAME_OWNED_BY_FRAME_OBJECT);
    SHAPE(reference_tag_mask, 0);
    SHAPE(managed_dict_words, -(MANAGED_DICT_OFFSET / (int)sizeof(PyObject *)));
    SHAPE(type_has_inline_values, 0);
    SHAPE(script_breaker, 0);
    SHAPE(debug_offsets_size, 0);
    return 0;
}
