/* 3.12 and later: a GIL for each interpreter, tagged integer sizes, sized frames. */
FIELD(interp, gil, PyInterpreterState, ceval.gil);
FIELD(interp, modules, PyInterpreterState, imports.modules);

FIELD(code, framesize, PyCodeObject, co_framesize);
FIELD(code, version, PyCodeObject, co_version);

FIELD(integer, tag, PyLongObject, long_value.lv_tag);
PLACE(integer, digits, offsetof(PyLongObject, long_value.ob_digit));
