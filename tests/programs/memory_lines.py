"""Allocates, line by line, what it can count itself, and prints its account: bytes that a line
asked for and in how many blocks, how much of that was freed again, the most that there was of it at
once, and whether CPython's allocators were asked.

Nothing is given back at the end: it goes without cleaning up."""

import ctypes
import gc
import json
import mmap
import os
import queue
import sys
import sysconfig
import threading
from itertools import repeat

try:
    import numpy
except ImportError:
    numpy = None

COUNT = 150000
MEBI = 1 << 20
BLOCK = bytes(4096)
NAMES = ["name-%06d" % number for number in range(COUNT)]
PATTERN = {"one": 1, "two": 2, "three": 3}
SIZE = 48 * MEBI

account = []
kept = []  # what stays

libc = ctypes.CDLL(None)
for function in (libc.malloc, libc.calloc, libc.realloc, libc.reallocarray, libc.memalign,
                 libc.aligned_alloc, libc.valloc, libc.pvalloc, libc.mmap64, libc.mremap):
    function.restype = ctypes.c_void_p
for function in (libc.malloc, libc.valloc, libc.pvalloc):
    function.argtypes = [ctypes.c_size_t]
for function in (libc.calloc, libc.memalign, libc.aligned_alloc):
    function.argtypes = [ctypes.c_size_t] * 2
libc.realloc.argtypes = libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.reallocarray.argtypes = libc.posix_memalign.argtypes = [ctypes.c_void_p,
                                                             *[ctypes.c_size_t] * 2]
libc.mmap64.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
libc.mremap.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] * 2, ctypes.c_int]
libc.free.argtypes = [ctypes.c_void_p]
libc.free.restype = None


def next_line():
    return sys._getframe(1).f_lineno + 1


def tell(line, allocated, blocks, freed=0, peak=None, python=True):
    account.append({"line": line, "name": sys._getframe(1).f_code.co_name, "blocks": blocks,
                    "allocated": allocated, "freed": freed, "python": python,
                    "peak": (allocated - freed or allocated) if peak is None else peak})


def size_of(items):
    return sum(map(sys.getsizeof, items)) + sys.getsizeof(items)


def given_up(items):
    """A list that grows item by item moves to a larger array each time in a free-threaded build,
    as another thread may be reading the old one (list_resize, Objects/listobject.c)."""
    given, room = 0, 0
    for size in range(1, len(items) + 1):
        if size > room:
            given += 8 * room
            room = (size + (size >> 3) + 6) & ~3
    return given if sysconfig.get_config_var("Py_GIL_DISABLED") else 0


def small_objects():
    line = next_line()
    items = [[] for _ in repeat(None, COUNT)]
    tell(line, size_of(items) + given_up(items), COUNT, freed=given_up(items))
    kept.append(items)


def strings():
    line = next_line()
    items = [name * 12 for name in NAMES]
    tell(line, size_of(items) + given_up(items), COUNT, freed=given_up(items))
    kept.append(items)


def dictionaries():
    line = next_line()
    items = [PATTERN.copy() for _ in repeat(None, COUNT // 2)]
    size = size_of(items) + given_up(items)
    tell(line, size, COUNT // 2, freed=size, peak=size_of(items))
    del items


def growing():
    grown = bytearray()
    for _ in repeat(None, 4096):
        line = next_line()
        grown += BLOCK
    tell(line, sys.getsizeof(grown), 150)
    kept.append(grown)


def churn():
    for _ in repeat(None, 500):
        line = next_line()
        bytes(100000)
    tell(line, 500 * 100033, 500, freed=500 * 100033, peak=100033)


def transient():
    line = next_line()
    length = len(b"x" * SIZE)
    tell(line, length + 33, 1, freed=length + 33)


def sum_of_two():
    first, second = b"1" * (SIZE // 2), b"2" * (SIZE // 2)
    line = next_line()
    both = first + second
    tell(line, len(both) + 33, 1)
    kept.append(both)


def freed_elsewhere():
    """By a thread that has allocated none of it."""
    jobs = queue.Queue()
    line = next_line()
    items = [bytearray(65535) for _ in repeat(None, 400)]
    size = size_of(items)
    tell(line, size, 800, freed=size)
    thread = threading.Thread(target=lambda: jobs.get().clear())
    thread.start()
    jobs.put(items)
    thread.join()
    del items


def other_threads():
    lines = []

    def work():
        lines.append(next_line())
        kept.append([bytearray(65535) for _ in repeat(None, 100)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tell(lines[0], sum(map(size_of, kept[-4:])), 800)


def native_blocks():
    """A line for each function that is hooked. What is resized counts as far as it has grown."""
    aligned = (ctypes.c_void_p * 1)()
    calls = [
        lambda: libc.malloc(MEBI),
        lambda: libc.calloc(8, MEBI // 8),
        lambda: libc.realloc(libc.malloc(MEBI // 2), MEBI),
        lambda: libc.reallocarray(libc.malloc(MEBI // 2), 8, MEBI // 8),
        lambda: libc.memalign(4096, MEBI),
        lambda: libc.aligned_alloc(4096, MEBI),
        lambda: libc.posix_memalign(aligned, 4096, MEBI) or aligned[0],
        lambda: libc.valloc(MEBI),
        lambda: libc.pvalloc(MEBI),
    ]
    for call in calls:
        blocks = [call() for _ in repeat(None, 24)]
        given_back = [] if call is calls[-1] else blocks  # jemalloc has none, and no free for it
        tell(call.__code__.co_firstlineno, 24 * MEBI, 24, freed=len(given_back) * MEBI,
             python=False)
        for block in given_back:
            libc.free(block)


def native_regions():
    size, access = 24 * MEBI, mmap.PROT_READ | mmap.PROT_WRITE
    flags, may_move = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 1
    line = next_line()
    region = libc.mmap64(None, size, access, flags, -1, 0)
    tell(line, size, 1, freed=size, python=False)
    line = next_line()
    region = libc.mremap(region, size, 2 * size, may_move)
    tell(line, size, 1, freed=size, python=False)
    libc.munmap(region, 2 * size)


def mapped():
    line = next_line()
    kept.append(mmap.mmap(-1, SIZE))
    tell(line, SIZE, 1, python=False)


def many_mapped():
    line = next_line()
    kept.append([mmap.mmap(-1, 1 << 16) for _ in repeat(None, 1500)])
    tell(line, 1500 << 16, 1500, python=False)


def arrays():
    first = numpy.ones(2 * MEBI)
    line = next_line()
    second = first + first
    tell(line, second.nbytes, 1, python=None)  # releases of numpy differ in whom they ask
    kept.append(second)


def run():
    gc.disable()  # it allocates for itself, in whatever line it begins
    for act in (small_objects, strings, dictionaries, growing, churn, transient, sum_of_two,
                freed_elsewhere, other_threads, native_blocks, native_regions, mapped, many_mapped):
        act()
    if numpy:
        arrays()


def main():
    run()
    print(json.dumps(account), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
