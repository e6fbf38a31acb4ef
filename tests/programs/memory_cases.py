"""What Scalene's own tests of its memory numbers look at, written anew: each case by its name, the
lines in question by the word behind them."""

import ctypes
import mmap
import os
import sys
import threading
import time

MEBI = 1 << 20
kept = []

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]


def large():
    for _ in range(48):
        kept.append(bytes(MEBI))  # large


def small():
    for _ in range(48):
        kept.append(bytes(MEBI // 4))  # small


def two_allocators():
    large()
    small()


def python_and_native():
    for _ in range(40):
        kept.append(bytes(MEBI))  # python
        kept.append(libc.malloc(MEBI))  # native


def arithmetic():
    """Lines that compute allocate what is gone at once: nothing of the big line's is theirs."""
    total = 0.0
    for number in range(40):
        kept.append(bytearray(MEBI))  # allocates
        for _ in range(2000):
            total = total * 1.0001 + number / 3  # multiplies
            total = total - 1.5  # subtracts
    return total


def inner(size):
    block = bytearray(size)  # inner
    return block


def outer():
    for _ in range(30):
        kept.append(inner(MEBI))  # outer


def nested():
    outer()


def first_worker():
    for _ in range(20):
        kept.append(bytearray(MEBI))  # first


def second_worker():
    for _ in range(60):
        kept.append(bytearray(MEBI))  # second


def threads():
    """And one that only waits for them."""
    workers = [threading.Thread(target=work) for work in (first_worker, second_worker)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        time.sleep(0.001)  # sleeps


def leak():
    """However the machine's other work spreads it over time: each eighth has some that stay."""
    longest, begun = 0, time.monotonic()
    while len(kept) < 400 or 8 * longest > time.monotonic() - begun:
        phase = time.monotonic()
        for _ in range(25):
            kept.append(bytes(100000))  # leaks
            block = b"x" * (5 * MEBI)  # rebinds
            passing = [block] * 1000  # passes
            sum(range(80000))  # so that there is some time in which it grows
        while time.monotonic() - phase < longest / 2:
            sum(range(80000))
        longest = max(longest, time.monotonic() - phase)
    print(len(kept), flush=True)
    return passing


def follow(name, before, after):
    source = "\n" * before + "made = [bytes(200000) for _ in range(4)]\n" + "\n" * after
    exec(compile(source, "/nowhere/made_%s.py" % name, "exec"), {})


def followers():
    for number in range(200):
        follow("one", 10, 30)
    for number in range(200):
        follow("two", 30, 10)


def stays(block):
    """Used, and there for as long as somebody who looks now and then may take to see it."""
    for place in range(0, len(block), 4096):
        block[place] = 1
    time.sleep(2)


def watched():
    stays(bytearray(200 * MEBI))


def unwatched():
    """From the kernel as jemalloc and mimalloc have it: it need not be there, and who uses how much
    of it they alone know."""
    no_reserve = 0x4000
    stays(mmap.mmap(-1, 200 * MEBI, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve))


globals()[sys.argv[1]]()
os._exit(0)
