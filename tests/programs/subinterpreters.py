"""Sub-interpreters, each run by a thread of the main interpreter and with a thread of its own. What runs
inside them declares its stacks through pipes."""

import json
import os
import sys
import threading

import target

try:
    import _interpreters as interpreters  # 3.13 and later
except ImportError:
    import _xxsubinterpreters as interpreters

INSIDE = """
import sys
sys.path[:] = {path!r}
import json, os, threading
import target

def own_thread():
    target.stay(interpreter={number})

def inside():
    def deeper():
        target.GO = {hold}
        target.READY = {tell}
        target.park(interpreter={number})
    deeper()

inner = target.start(own_thread, name="own of {number}")
target._truths.append(target.truth_of_thread(sys._getframe(0), interpreter={number}))
target._truths.pop()
sys.argv = [""]
inside()
inner.join()
"""


def number_of(created):
    """The id as a plain number: 3.8 to 3.12 hand out an object."""
    return int(created)


def run_inside(number, source, begun):
    begun.set()
    interpreters.run_string(number, source)


def two():
    numbers, holds, threads, truths = [], [], [], []
    for _ in range(2):
        created = interpreters.create()
        number = number_of(created)
        hold_read, hold = os.pipe()
        heard, tell = os.pipe()
        source = INSIDE.format(path=sys.path, number=number, hold=hold_read, tell=tell)
        thread = threading.Thread(target=interpreters.run_string, args=(created, source))
        thread.start()
        line = b""
        while not line.endswith(b"\n"):
            line += os.read(heard, 65536)
        truths += json.loads(line)["threads"]
        numbers.append(number)
        holds.append(hold)
        threads.append((thread, created))
    result = park_with(truths, numbers)
    for hold, (thread, created) in zip(holds, threads):
        os.close(hold)
        thread.join()
        interpreters.destroy(created)
    return result


def park_with(truths, numbers):
    for truth in truths:
        target._truths.append(truth)
    return target.park(interpreters=numbers)


def ended():
    created = interpreters.create()
    interpreters.run_string(created, "import threading")
    interpreters.destroy(created)
    return target.park(interpreter=0)


CASES = {"two": two, "ended": ended}

if __name__ == "__main__":
    target.run(CASES)
