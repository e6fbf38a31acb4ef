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
                      "copies": [act() for act in acts]}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
