/* 3.8 to 3.10: frames are heap objects, bytecode and line table hang off the code object. */
PLACE(runtime, gil, offsetof(_PyRuntimeState, ceval.gil));

FIELD(interp, threads_head, PyInterpreterState, tstate_head);
FIELD(interp, modules, PyInterpreterState, modules);

FIELD(thread, frame, PyThreadState, frame);

FIELD(frame, previous, PyFrameObject, f_back);
FIELD(frame, code, PyFrameObject, f_code);
FIELD(frame, position, PyFrameObject, f_lasti);
PLACE(frame, localsplus, offsetof(PyFrameObject, f_localsplus));

FIELD(code, bytecode, PyCodeObject, co_code);

FIELD(integer, tag, struct _longobject, ob_base.ob_size);
PLACE(integer, digits, offsetof(struct _longobject, ob_digit));

FIELD(keys, index_count, PyDictKeysObject, dk_size);
/* ma_values points to the values themselves. */
PLACE(values, items, 0);

FIELD(generator, frame, PyGenObject, gi_frame);

SHAPE(free_threaded, 0);
SHAPE(shim_owners, 0);
SHAPE(highest_owner, 0);
SHAPE(generator_owner, 0);
SHAPE(reference_tag_mask, 0);
SHAPE(managed_dict_words, 0);
SHAPE(type_has_inline_values, 0);
SHAPE(type_has_managed_dict, 0);
SHAPE(script_breaker, 0);
SHAPE(debug_offsets_size, 0);
