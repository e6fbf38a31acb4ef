"""Work whose right result is known: threads that hash, recurse, sleep and poll, over and over, and
each round must come out like the first. Until they are let go; `unharmed.py SECONDS`: so long."""

import hashlib
import select
import sys
import threading
import time
import zlib

DATA = bytes(range(256)) * 256
leave = threading.Event()
results = {}


def generated(depth):
    if depth:
        yield depth
        for value in generated(depth - 1):
            yield value + 1


def python_work():
    total = 0
    for number in range(40):
        total = (total * 31 + sum(generated(12)) + number) % 1000003
    return total


def native_work():
    return hashlib.sha256(DATA).hexdigest(), zlib.crc32(DATA), len(zlib.compress(DATA, 6))


def waiting_work():
    """Neither early nor with an error."""
    begin = time.monotonic()
    time.sleep(0.002)
    events = select.epoll().poll(0.002) if hasattr(select, "epoll") else []
    return events, leave.wait(0.001) and not leave.is_set(), time.monotonic() - begin >= 0.004


def repeat(work, seconds):
    first = work()
    right = True
    end = time.monotonic() + seconds if seconds else None
    while not leave.is_set() and (end is None or time.monotonic() < end):
        again = work()
        right = right and (again == first or leave.is_set() and work is waiting_work)
    results[work.__name__] = right


def main(seconds=0):
    import target

    works = (python_work, native_work, native_work, waiting_work)
    threads = [threading.Thread(target=repeat, args=(work, seconds)) for work in works]
    for thread in threads:
        thread.start()
    target.say()
    if not seconds:
        target.wait_for_go()
        leave.set()
    for thread in threads:
        thread.join()
    if seconds:
        target.wait_for_go()
    right = len(results) == 3 and all(results.values())
    target.say(result=42 if right else results)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
