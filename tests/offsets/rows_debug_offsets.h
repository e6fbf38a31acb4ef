/* 3.13 and later: what else came with the debug offsets, and where each stands in them. */
FIELD(runtime, finalizing, _PyRuntimeState, _finalizing);

FIELD(thread, frame, PyThreadState, current_frame);
FIELD(thread, attach_state, PyThreadState, state);

FIELD(frame, code, _PyInterpreterFrame, f_executable);
FIELD(frame, instruction, _PyInterpreterFrame, instr_ptr);

FIELD(values, valid, PyDictValues, valid);

SHAPE(type_has_inline_values, Py_TPFLAGS_INLINE_VALUES);
SHAPE(managed_dict_words, -(MANAGED_DICT_OFFSET / (long)sizeof(PyObject *)));
SHAPE(debug_offsets_size, sizeof(struct _Py_DebugOffsets));

TOLD(runtime, size, runtime_state.size);
TOLD(runtime, finalizing, runtime_state.finalizing);
TOLD(runtime, interpreters_head, runtime_state.interpreters_head);

TOLD(interp, size, interpreter_state.size);
TOLD(interp, id, interpreter_state.id);
TOLD(interp, next, interpreter_state.next);
TOLD(interp, threads_head, interpreter_state.threads_head);
TOLD_SUM(interp, gc_collecting, interpreter_state.gc, gc.collecting);
TOLD(interp, modules, interpreter_state.imports_modules);
TOLD(interp, sysdict, interpreter_state.sysdict);
TOLD(interp, gil, interpreter_state.ceval_gil);

TOLD_DIFFERENCE(gil, locked, interpreter_state.gil_runtime_state_locked,
                interpreter_state.gil_runtime_state);
TOLD_DIFFERENCE(gil, last_holder, interpreter_state.gil_runtime_state_holder,
                interpreter_state.gil_runtime_state);

TOLD(thread, size, thread_state.size);
TOLD(thread, prev, thread_state.prev);
TOLD(thread, next, thread_state.next);
TOLD(thread, interp, thread_state.interp);
TOLD(thread, frame, thread_state.current_frame);
TOLD(thread, ident, thread_state.thread_id);
TOLD(thread, native_id, thread_state.native_thread_id);
TOLD(thread, datastack_chunk, thread_state.datastack_chunk);

TOLD(frame, size, interpreter_frame.size);
TOLD(frame, previous, interpreter_frame.previous);
TOLD(frame, code, interpreter_frame.executable);
TOLD(frame, instruction, interpreter_frame.instr_ptr);
TOLD(frame, localsplus, interpreter_frame.localsplus);
TOLD(frame, owner, interpreter_frame.owner);

TOLD(code, size, code_object.size);
TOLD(code, filename, code_object.filename);
TOLD(code, name, code_object.name);
TOLD(code, qualname, code_object.qualname);
TOLD(code, line_table, code_object.linetable);
TOLD(code, firstlineno, code_object.firstlineno);
TOLD(code, argcount, code_object.argcount);
TOLD(code, bytecode_inline, code_object.co_code_adaptive);

TOLD(object, type, pyobject.ob_type);
TOLD(object, var_size, tuple_object.ob_size);
TOLD(type, name, type_object.tp_name);
TOLD(type, flags, type_object.tp_flags);
TOLD(tuple, length, tuple_object.ob_size);
TOLD(tuple, items, tuple_object.ob_item);

TOLD(dict, size, dict_object.size);
TOLD(dict, keys, dict_object.ma_keys);
TOLD(dict, values, dict_object.ma_values);

TOLD(integer, tag, long_object.lv_tag);
TOLD(integer, digits, long_object.ob_digit);
TOLD(bytes, length, bytes_object.ob_size);
TOLD(bytes, data, bytes_object.ob_sval);

TOLD(unicode, size, unicode_object.size);
TOLD(unicode, state, unicode_object.state);
TOLD(unicode, length, unicode_object.length);
TOLD(unicode, ascii_data, unicode_object.asciiobject_size);

#ifdef Py_GIL_DISABLED
FIELD(gil, enabled, struct _gil_runtime_state, enabled);
TOLD(gil, enabled, interpreter_state.gil_runtime_state_enabled);
SHAPE(free_threaded, 1);
#else
SHAPE(free_threaded, 0);
#endif
