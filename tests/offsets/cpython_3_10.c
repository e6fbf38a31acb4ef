/* What the headers of CPython 3.10 say. */
#include "probe.h"

#include <frameobject.h>

#include "internal/pycore_interp.h"
#include "internal/pycore_moduleobject.h"
#include "internal/pycore_runtime.h"

/* No installed header has it: Objects/dict-common.h of v3.10. */
struct _dictkeysobject {
    Py_ssize_t dk_refcnt, dk_size;
    void *dk_lookup;
    Py_ssize_t dk_usable, dk_nentries;
    char dk_indices[];
};

int main(void)
{
#include "rows_every.h"
#include "rows_heap_frames.h"

    FIELD(runtime, finalizing, _PyRuntimeState, _finalizing);
    FIELD(interp, gc_collecting, PyInterpreterState, gc.collecting);

    FIELD(frame, executing, PyFrameObject, f_state);
    SHAPE(executing, FRAME_EXECUTING);

    FIELD(code, line_table, PyCodeObject, co_linetable);
    return 0;
}
