/* What the headers of CPython 3.13 say, and with Py_GIL_DISABLED of 3.13t. */
#include "probe.h"

#include "internal/pycore_dict.h"
#include "internal/pycore_frame.h"
#include "internal/pycore_interp.h"
#include "internal/pycore_moduleobject.h"
#include "internal/pycore_object.h"
#include "internal/pycore_runtime.h"

int main(void)
{
#include "rows_debug_offsets.h"
#include "rows_every.h"
#include "rows_own_gil.h"
#include "rows_stack_frames.h"

    FIELD(frame, stacktop, _PyInterpreterFrame, stacktop);

    SHAPE(shim_owners, 1 << FRAME_OWNED_BY_CSTACK);
    SHAPE(highest_owner, FRAME_OWNED_BY_CSTACK);
    SHAPE(reference_tag_mask, 0);
    SHAPE(script_breaker, 0);
    return 0;
}
