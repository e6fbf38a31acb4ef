/* What the headers of CPython 3.14 say, and with Py_GIL_DISABLED of 3.14t. */
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

    SHAPE(shim_owners, 1 << FRAME_OWNED_BY_INTERPRETER | 1 << FRAME_OWNED_BY_CSTACK);
    SHAPE(highest_owner, FRAME_OWNED_BY_CSTACK);
    return 0;
}
