"""Prints by how much its resident memory grows with 200 MB that calloc gives and nobody touches,
and how much it copies in which lines."""

import ctypes
import json
import os
import sys

try:
    import numpy
except ImportError:
    numpy = None

ZEROS = 200 * 1000 * 1000
BLOCK, TIMES = 4 << 20, 128
TEXT, TEXT_TIMES = 1 << 20, 24

libc = ctypes.CDLL(None)
libc.calloc.restype = ctypes.c_void_p
libc.calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def copy():
    into, source = ctypes.create_string_buffer(BLOCK), ctypes.create_string_buffer(BLOCK)
    line = sys._getframe().f_lineno + 2
    for _ in range(TIMES):
        ctypes.memmove(into, source, BLOCK)
    return {"line": line, "copied": BLOCK * TIMES}


def copy_checked():
    """As compilers call it that know how much room there is."""
    into, source = ctypes.create_string_buffer(BLOCK), ctypes.create_string_buffer(BLOCK)
    libc.__memcpy_chk.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
                                  ctypes.c_size_t]
    line = sys._getframe().f_lineno + 2
    for _ in range(TIMES):
        libc.__memcpy_chk(into, source, BLOCK, BLOCK)
    return {"line": line, "copied": BLOCK * TIMES}


def copies_of_text():
    """By each function that is hooked, from a text with a NUL to the beginning of another."""
    into, text = ctypes.create_string_buffer(TEXT + 1), ctypes.create_string_buffer(b"x" * TEXT)
    size, room, other = ctypes.c_size_t(TEXT), ctypes.c_size_t(TEXT + 1), ord("y")
    calls = [
        lambda: libc.memcpy(into, text, size),
        lambda: libc.memmove(into, text, size),
        lambda: libc.mempcpy(into, text, size),
        lambda: libc.memccpy(into, text, other, size),
        lambda: libc.strcpy(into, text),
        lambda: libc.stpcpy(into, text),
        lambda: libc.strncpy(into, text, size),
        lambda: libc.stpncpy(into, text, size),
        lambda: libc.strcat(into, text),
        lambda: libc.strncat(into, text, size),
        lambda: libc.__memmove_chk(into, text, size, room),
        lambda: libc.__mempcpy_chk(into, text, size, room),
        lambda: libc.__strcpy_chk(into, text, room),
        lambda: libc.__stpcpy_chk(into, text, room),
        lambda: libc.__strncpy_chk(into, text, size, room),
        lambda: libc.__stpncpy_chk(into, text, size, room),
        lambda: libc.__strcat_chk(into, text, room),
        lambda: libc.__strncat_chk(into, text, size, room),
    ]
    for call in calls:
        for _ in range(TEXT_TIMES):
            into[0] = b"\0"
            call()
        assert into.raw == text.raw
        ctypes.memset(into, 0, TEXT)
        yield {"line": call.__code__.co_firstlineno, "copied": TEXT * TEXT_TIMES}


def copy_bytes():
    source = bytearray(BLOCK)
    line = sys._getframe().f_lineno + 2
    for _ in range(TIMES):
        bytes(source)
    return {"line": line, "copied": BLOCK * TIMES}


def copy_array():
    source = numpy.ones(BLOCK, dtype="u1")
    line = sys._getframe().f_lineno + 2
    for _ in range(TIMES):
        source.copy()
    return {"line": line, "copied": BLOCK * TIMES}


def main():
    before = resident()
    line = sys._getframe().f_lineno + 1
    block = libc.calloc(ZEROS // 8, 8)
    grown = resident() - before
    assert block
    acts = [copy, copy_checked, copy_bytes, *([copy_array] if numpy else [])]
    print(json.dumps({"line": line, "allocated": ZEROS, "grown": grown,
                      "copies": [*copies_of_text(), *[act() for act in acts]]}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
