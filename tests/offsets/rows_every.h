/* Rows that read the same in every release. Included inside a probe's main(). */
FIELD(runtime, interpreters_head, _PyRuntimeState, interpreters.head);
FIELD(runtime, interpreters_main, _PyRuntimeState, interpreters.main);

FIELD(interp, next, PyInterpreterState, next);
FIELD(interp, id, PyInterpreterState, id);
FIELD(interp, sysdict, PyInterpreterState, sysdict);

FIELD(gil, last_holder, struct _gil_runtime_state, last_holder);
FIELD(gil, locked, struct _gil_runtime_state, locked);
PLACE(gil, end, sizeof(struct _gil_runtime_state));

FIELD(thread, prev, PyThreadState, prev);
FIELD(thread, next, PyThreadState, next);
FIELD(thread, interp, PyThreadState, interp);
FIELD(thread, ident, PyThreadState, thread_id);

FIELD(code, argcount, PyCodeObject, co_argcount);
FIELD(code, flags, PyCodeObject, co_flags);
FIELD(code, firstlineno, PyCodeObject, co_firstlineno);
FIELD(code, stacksize, PyCodeObject, co_stacksize);
FIELD(code, filename, PyCodeObject, co_filename);
FIELD(code, name, PyCodeObject, co_name);

FIELD(object, type, PyObject, ob_type);
FIELD(object, var_size, PyVarObject, ob_size);

FIELD(type, name, PyTypeObject, tp_name);
FIELD(type, basicsize, PyTypeObject, tp_basicsize);
FIELD(type, flags, PyTypeObject, tp_flags);
FIELD(type, dictoffset, PyTypeObject, tp_dictoffset);
FIELD(type, cached_keys, PyHeapTypeObject, ht_cached_keys);

FIELD(unicode, length, PyASCIIObject, length);
FIELD(unicode, hash, PyASCIIObject, hash);
FIELD(unicode, state, PyASCIIObject, state);
PLACE(unicode, ascii_data, sizeof(PyASCIIObject));
PLACE(unicode, compact_data, sizeof(PyCompactUnicodeObject));
FIELD(unicode, any, PyUnicodeObject, data.any);
STATE_SHIFT(unicode_kind_shift, kind);
STATE_SHIFT(unicode_compact_shift, compact);
STATE_SHIFT(unicode_ascii_shift, ascii);

FIELD(bytes, length, PyBytesObject, ob_base.ob_size);
PLACE(bytes, data, offsetof(PyBytesObject, ob_sval));

FIELD(tuple, length, PyTupleObject, ob_base.ob_size);
PLACE(tuple, items, offsetof(PyTupleObject, ob_item));

FIELD(dict, used, PyDictObject, ma_used);
FIELD(dict, keys, PyDictObject, ma_keys);
FIELD(dict, values, PyDictObject, ma_values);

FIELD(module, dict, PyModuleObject, md_dict);

FIELD(keys, entry_count, PyDictKeysObject, dk_nentries);
PLACE(keys, indices, offsetof(PyDictKeysObject, dk_indices));

SHAPE(major, PY_MAJOR_VERSION);
SHAPE(minor, PY_MINOR_VERSION);
