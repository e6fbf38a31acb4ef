/* 3.14 and later: frames hold tagged references, the free-threaded build a bytecode for each
 * thread. */
FIELD(interp, code_generation, PyInterpreterState, _code_object_generation);
TOLD(interp, code_generation, interpreter_state.code_object_generation);

FIELD(interp, remote_debug, PyInterpreterState, config.remote_debug);
TOLD(interp, remote_debug, debugger_support.remote_debugging_enabled);

FIELD(runtime, audit_hooks, _PyRuntimeState, audit_hooks.head);
FIELD(debugger, eval_breaker, PyThreadState, eval_breaker);
FIELD(debugger, tracer, PyThreadState, c_tracefunc);
FIELD(debugger, profiler, PyThreadState, c_profilefunc);
FIELD(debugger, pending_call, PyThreadState, remote_debugger_support.debugger_pending_call);
PLACE(debugger, script_path, offsetof(PyThreadState, remote_debugger_support.debugger_script_path));
TOLD(debugger, eval_breaker, debugger_support.eval_breaker);
TOLD_SUM(debugger, pending_call, debugger_support.remote_debugger_support,
         debugger_support.debugger_pending_call);
TOLD_SUM(debugger, script_path, debugger_support.remote_debugger_support,
         debugger_support.debugger_script_path);
SHAPE(script_breaker, _PY_EVAL_PLEASE_STOP_BIT);

FIELD(thread, holds_gil, PyThreadState, holds_gil);

FIELD(frame, stackpointer, _PyInterpreterFrame, stackpointer);
TOLD(frame, stackpointer, interpreter_frame.stackpointer);

TOLD(generator, size, gen_object.size);
TOLD(generator, frame_inline, gen_object.gi_iframe);
TOLD(generator, frame_state, gen_object.gi_frame_state);

SHAPE(reference_tag_mask, Py_TAG_BITS | Py_INT_TAG);

#ifdef Py_GIL_DISABLED
FIELD(interp, tlbc_generation, PyInterpreterState, tlbc_indices.tlbc_generation);
TOLD(interp, tlbc_generation, interpreter_state.tlbc_generation);

FIELD(frame, tlbc_index, _PyInterpreterFrame, tlbc_index);
TOLD(frame, tlbc_index, interpreter_frame.tlbc_index);

FIELD(code, tlbc, PyCodeObject, co_tlbc);
TOLD(code, tlbc, code_object.co_tlbc);

FIELD(tlbc, array_size, _PyCodeArray, size);
PLACE(tlbc, entries, offsetof(_PyCodeArray, entries));
#endif
