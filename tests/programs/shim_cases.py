"""Allocates in functions of known names and prints for each how many bytes that was, in how many
blocks, and what else there is to know. What a function returns is kept to the end."""

import ctypes
import gc
import json
import mmap
import os
import subprocess
import sys
import threading
from itertools import repeat

LIBC = ctypes.CDLL(None)
LIBC.malloc.restype = LIBC.calloc.restype = LIBC.realloc.restype = ctypes.c_void_p
LIBC.malloc.argtypes = [ctypes.c_size_t]
LIBC.calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
LIBC.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
LIBC.free.argtypes = [ctypes.c_void_p]
LIBC.memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
LIBC.memcpy.restype = ctypes.c_void_p

PIECE = bytes(1000)
SMALL_PIECE = bytes(75)  # they grow to far below a size that mimalloc gives
MIB = 1 << 20
FACTS = {}


def tell(name, size, blocks, **more):
    FACTS[name] = dict(more, size=size, blocks=blocks, pid=os.getpid())


def kept_bytes():
    kept = [bytes(2000) for _ in repeat(None, 10000)]
    tell("kept_bytes", len(kept) * sys.getsizeof(kept[0]), len(kept))
    return kept


def dropped_bytes():
    for _ in repeat(None, 10000):
        bytes(3000)
    tell("dropped_bytes", 10000 * sys.getsizeof(bytes(3000)), 10000)


def one_growing():
    grown = bytearray()
    for _ in repeat(None, 20000):
        grown += PIECE
    tell("one_growing", grown.__alloc__(), 20)
    return grown


def small_ones():
    return [bytearray(30) for _ in repeat(None, 40000)]


def many_growing(grown):
    """Small ones, whose size is nowhere to be looked up."""
    before = sys.getsizeof(grown[0])
    for _ in repeat(None, 6):
        for one in grown:
            one += SMALL_PIECE
    tell("many_growing", len(grown) * (sys.getsizeof(grown[0]) - before), len(grown))
    return grown


def many_shrinking():
    shrunk = [bytearray(6000) for _ in repeat(None, 4000)]
    for one in shrunk:
        del one[1000:]
    tell("many_shrinking", 4000 * sys.getsizeof(bytearray(6000)), 4000,
         left=len(shrunk) * sys.getsizeof(shrunk[0]))
    return shrunk


def native_blocks():
    blocks = [LIBC.malloc(5000) for _ in repeat(None, 4000)]
    tell("native_blocks", 4000 * 5000, 4000)
    return blocks


def native_growing():
    """Each to three times its size, in steps."""
    blocks = []
    for _ in repeat(None, 4000):
        block = LIBC.malloc(1000)
        for size in range(1200, 3001, 200):
            block = LIBC.realloc(block, size)
        blocks.append(block)
    tell("native_growing", 4000 * 3000, 4000 * 3)
    return blocks


def free_all(blocks):
    for block in blocks:
        LIBC.free(block)


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE


def untouched():
    before = resident()
    block = LIBC.calloc(200, MIB)
    tell("untouched", 200 * MIB, 1, grown=resident() - before)
    LIBC.free(block)


def mapped():
    region = mmap.mmap(-1, 20 * MIB)
    tell("mapped", 20 * MIB, 1)
    region.close()


def copied():
    there, here = bytearray(MIB), bytes(MIB)
    address = ctypes.addressof(ctypes.c_char.from_buffer(there))
    for _ in repeat(None, 200):
        LIBC.memcpy(address, here, MIB)
    tell("copied", 200 * MIB, 200)


def threaded():
    """No comprehension, as below: until 3.10 its frame is kept for the next one."""
    return list(map(bytes, repeat(2500, 4000)))


def in_thread(into):
    kept = threaded()
    tell("threaded", len(kept) * sys.getsizeof(kept[0]), len(kept), tid=threading.get_native_id())
    into.append(kept)


def in_child():
    kept = list(map(bytes, repeat(2100, 4000)))
    tell("in_child", len(kept) * sys.getsizeof(kept[0]), len(kept))
    print(json.dumps(FACTS), flush=True)


def in_program():
    kept = list(map(bytes, repeat(2200, 4000)))
    tell("in_program", len(kept) * sys.getsizeof(kept[0]), len(kept))
    print(json.dumps(FACTS), flush=True)


def leave():
    """Where all was dropped nothing may stay, not even what was told of it."""
    FACTS.clear()
    gc.collect()
    os._exit(0)


def await_ends():
    """Of threads that were joined: the kernel may still have them, and fork() warns of them."""
    while len(os.listdir("/proc/self/task")) > 1:
        os.sched_yield()


def main():
    if sys.argv[1:] == ["program"]:
        return in_program()
    keep, handed = [kept_bytes(), one_growing(), many_growing(small_ones())], []
    keep.append(many_shrinking())
    dropped_bytes()
    blocks = native_blocks() + native_growing()
    freer = threading.Thread(target=free_all, args=(blocks,))
    freer.start()
    freer.join()
    untouched()
    mapped()
    copied()
    worker = threading.Thread(target=in_thread, args=(handed,))
    worker.start()
    worker.join()
    handed.clear()
    print(json.dumps(FACTS), flush=True)
    FACTS.clear()
    await_ends()
    child = os.fork()
    if not child:
        keep.clear()  # none of it is the child's
        in_child()
        leave()
    os.waitpid(child, 0)
    subprocess.run([sys.executable, __file__, "program"], check=True)
    os._exit(0)


main()
