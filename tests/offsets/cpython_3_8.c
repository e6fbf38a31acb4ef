/* What the headers of CPython 3.8 say. */
#include "probe.h"

#include <frameobject.h>

#include "internal/pycore_object.h"
#include "internal/pycore_pystate.h"

/* No installed header has these two: Objects/moduleobject.c and Objects/dict-common.h of v3.8. */
typedef struct {
    PyObject_HEAD PyObject *md_dict;
} PyModuleObject;

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

    FIELD(runtime, finalizing, _PyRuntimeState, finalizing);
    FIELD(runtime, gc_collecting, _PyRuntimeState, gc.collecting);

    FIELD(frame, executing, PyFrameObject, f_executing);
    SHAPE(executing, 1); /* f_executing is a truth value */

    FIELD(code, line_table, PyCodeObject, co_lnotab);
    return 0;
}
