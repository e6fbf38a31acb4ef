"""Runs inside an interpreter: its own objects must lie as our layout of its release (lines of
print_layout on standard input) says. For what no installed header tells, dict keys and modules
before 3.10 above all, this is the only witness; the rest is seen a second time."""

import ctypes
import gc
import sys
import threading

layout = {}
for line in sys.stdin:
    words = line.split()
    if len(words) == 3 and words[1].isdigit():
        layout[words[0]] = int(words[1])


def read(start, field, kind=ctypes.c_uint64):
    return kind.from_address(start + layout[field]).value


def confirm(what, seen, wanted):
    if seen != wanted:
        sys.exit(f"{sys.version.split()[0]}: {what}: {seen} instead of {wanted}")


def confirm_runtime():
    runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
    current = ctypes.pythonapi.PyThreadState_Get
    current.restype = ctypes.c_uint64
    thread = current()
    interp = read(runtime, "runtime.interpreters_head")
    confirm("main interpreter", read(runtime, "runtime.interpreters_main"), interp)
    confirm("the thread's interpreter", read(thread, "thread.interp"), interp)
    confirm("first thread", read(interp, "interp.threads_head"), thread)
    confirm("thread ident", read(thread, "thread.ident"), threading.get_ident())
    if "thread.native_id" in layout:
        confirm("native id", read(thread, "thread.native_id"), threading.get_native_id())
    if "interp.modules" in layout:
        confirm("sys.modules", read(interp, "interp.modules"), id(sys.modules))
    return runtime, interp, thread


def confirm_gil(runtime, interp, thread):
    gil = runtime + layout["runtime.gil"] if "runtime.gil" in layout else read(interp, "interp.gil")
    if "gil.enabled" in layout and not read(gil, "gil.enabled", ctypes.c_int):
        return
    confirm("holder of the GIL", read(gil, "gil.last_holder"), thread)
    confirm("GIL locked", read(gil, "gil.locked", ctypes.c_int), 1)


def confirm_collecting(runtime, interp):
    seen = []
    start = (runtime, "runtime") if "runtime.gc_collecting" in layout else (interp, "interp")

    def look(*_):
        seen.append(read(start[0], start[1] + ".gc_collecting", ctypes.c_int))

    look()
    gc.callbacks.append(look)
    gc.collect()
    gc.callbacks.remove(look)
    confirm("collecting: before, and at some time within", (seen[0], 1 in seen[1:]), (0, True))


def confirm_dict():
    keys = {"first": 1, "second": 2, "third": 3}
    start = read(id(keys), "dict.keys")
    slots = 8  # of one byte each, as CPython's smallest table has
    entries = start + layout["keys.indices"] + slots
    confirm("dict length", read(id(keys), "dict.used"), len(keys))
    confirm("entries", read(start, "keys.entry_count"), len(keys))
    if "keys.index_count" in layout:
        confirm("slots", read(start, "keys.index_count"), slots)
        entries += 8  # each entry begins with the hash
    else:
        confirm("slots", 1 << read(start, "keys.log2_size", ctypes.c_uint8), slots)
        confirm("index bytes", 1 << read(start, "keys.log2_index_bytes", ctypes.c_uint8), slots)
        confirm("kind", read(start, "keys.kind", ctypes.c_uint8), 1)
    confirm("first key", ctypes.c_uint64.from_address(entries).value, id(next(iter(keys))))
    confirm("module dict", read(id(threading), "module.dict"), id(vars(threading)))


def confirm_instance():
    class Thing:
        pass

    thing = Thing()
    thing.name = "something"
    kind = id(Thing)
    confirm("type name", ctypes.string_at(read(kind, "type.name")), b"Thing")
    confirm("type flags", read(kind, "type.flags"), Thing.__flags__)
    confirm("basicsize", read(kind, "type.basicsize"), Thing.__basicsize__)
    confirm("dictoffset", read(kind, "type.dictoffset", ctypes.c_int64), Thing.__dictoffset__)
    confirm("shared keys", read(read(kind, "type.cached_keys"), "keys.entry_count"), 1)


def confirm_code():
    code = confirm_code.__code__
    confirm("filename", read(id(code), "code.filename"), id(code.co_filename))
    confirm("first line", read(id(code), "code.firstlineno", ctypes.c_int), code.co_firstlineno)
    confirm("flags", read(id(code), "code.flags", ctypes.c_int), code.co_flags)
    confirm("stack size", read(id(code), "code.stacksize", ctypes.c_int), code.co_stacksize)


state = confirm_runtime()
confirm_gil(*state)
confirm_collecting(*state[:2])
confirm_dict()
confirm_instance()
confirm_code()
