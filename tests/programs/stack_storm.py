"""Allocates as fast as it can, from half a million different stacks, keeps some of it for a while
and has another thread free it. Argument: for how long."""

import random
import sys
import threading
import time
from queue import SimpleQueue

DEPTH, KEPT = 12, 2000


def small(chance, depth):
    return below(chance, depth), [bytes(chance.randrange(600)) for _ in range(20)]


def large(chance, depth):
    return below(chance, depth), bytearray(chance.randrange(1 << 17))


def text(chance, depth):
    return below(chance, depth), {str(number): "x" * number for number in range(20)}


def below(chance, depth):
    return chance.choice((small, large, text))(chance, depth - 1) if depth else None


def free(handed):
    while handed.get():
        pass


def storm(end, handed):
    chance, kept = random.Random(1), {}
    while time.perf_counter() < end:
        place = chance.randrange(KEPT)
        handed.put(kept.pop(place, True))
        kept[place] = below(chance, chance.randrange(1, DEPTH))


freed = SimpleQueue()
thread = threading.Thread(target=free, args=(freed,))
thread.start()
storm(time.perf_counter() + float(sys.argv[1]), freed)
freed.put(None)
thread.join()
