/* What the headers of CPython 3.12 say. */
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
#include "rows_own_gil.h"
#include "rows_stack_frames.h"

    FIELD(runtime, finalizing, _PyRuntimeState, _finalizing);

    FIELD(thread, cframe, PyThreadState, cframe);
    FIELD(cframe, current_frame, _PyCFrame, current_frame);
    FIELD(cframe, previous, _PyCFrame, previous);

    FIELD(frame, code, _PyInterpreterFrame, f_code);
    FIELD(frame, instruction, _PyInterpreterFrame, prev_instr);
    FIELD(frame, stacktop, _PyInterpreterFrame, stacktop);

    SHAPE(free_threaded, 0);
    SHAPE(shim_owners, 1 << FRAME_OWNED_BY_CSTACK);
    SHAPE(highest_owner, FRAME_OWNED_BY_CSTACK);
    SHAPE(reference_tag_mask, 0);
    SHAPE(managed_dict_words,
          ((PyDictOrValues *)sizeof(PyHeapTypeObject) -
           _PyObject_DictOrValuesPointer((PyObject *)sizeof(PyHeapTypeObject))));
    SHAPE(type_has_inline_values, 0);
    SHAPE(script_breaker, 0);
    SHAPE(debug_offsets_size, 0);
    return 0;
}
