/* 3.11 and later: frames lie in data-stack chunks, bytecode stands at the end of the code object.
 */
FIELD(interp, threads_head, PyInterpreterState, threads.head);
FIELD(interp, gc_collecting, PyInterpreterState, gc.collecting);

FIELD(thread, native_id, PyThreadState, native_thread_id);
FIELD(thread, datastack_chunk, PyThreadState, datastack_chunk);
FIELD(thread, datastack_top, PyThreadState, datastack_top);

FIELD(chunk, previous, _PyStackChunk, previous);
FIELD(chunk, chunk_size, _PyStackChunk, size);
FIELD(chunk, top, _PyStackChunk, top);
PLACE(chunk, data, offsetof(_PyStackChunk, data));

FIELD(frame, previous, _PyInterpreterFrame, previous);
FIELD(frame, owner, _PyInterpreterFrame, owner);
PLACE(frame, localsplus, offsetof(_PyInterpreterFrame, localsplus));

FIELD(code, nlocalsplus, PyCodeObject, co_nlocalsplus);
FIELD(code, qualname, PyCodeObject, co_qualname);
FIELD(code, line_table, PyCodeObject, co_linetable);
PLACE(code, bytecode_inline, offsetof(PyCodeObject, co_code_adaptive));

FIELD(keys, log2_size, PyDictKeysObject, dk_log2_size);
FIELD(keys, log2_index_bytes, PyDictKeysObject, dk_log2_index_bytes);
FIELD(keys, kind, PyDictKeysObject, dk_kind);
PLACE(values, items, offsetof(PyDictValues, values));

FIELD(generator, frame_state, PyGenObject, gi_frame_state);
PLACE(generator, frame_inline, offsetof(PyGenObject, gi_iframe));

SHAPE(executing, FRAME_EXECUTING);
SHAPE(generator_owner, FRAME_OWNED_BY_GENERATOR);
SHAPE(type_has_managed_dict, Py_TPFLAGS_MANAGED_DICT);
