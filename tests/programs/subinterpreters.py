"""Sub-interpreters, each run by a thread of the main interpreter and with a thread of its own.
What runs inside them declares its stacks through pipes."""

import json
import os
import sys
import threading

import target

try:
    import _interpreters as interpreters  # 3.13 and later
except ImportError:
    import _xxsubinterpreters as interpreters

# 3.9 to 3.11 let no thread start in an isolated one; from 3.12 on that has a GIL of its own.
OPTIONS = {"isolated": False} if (3, 9) <= sys.version_info < (3, 12) else {}

INSIDE = """
import sys
sys.path[:] = {path!r}
import target

def own_thread():
    target.stay(interpreter={number})

def inside():
    def deeper():
        target.READY, target.GO = {tell}, {hold}
        target.park(interpreter={number})
    deeper()

own = target.start(own_thread, name="own of {number}", daemon=False)
inside()
own.join()
"""

SPINNING = """
import os

def spin_inside():
    while True:
        for _ in range(1000000):
            pass
        try:
            return os.read({hold}, 1)
        except BlockingIOError:
            pass

os.set_blocking({hold}, False)
os.write({tell}, b'{{"threads": []}}\\n')
spin_inside()
"""


class Inside:
    """A sub-interpreter that stays inside until it is let go. The thread that runs it has made
    it: CPython 3.12 and older note a state's thread when it is made."""

    def __init__(self, source=INSIDE):
        self.source = source
        self.hold_read, self.hold = os.pipe()
        heard, self.tell = os.pipe()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        with os.fdopen(heard) as file:
            self.truths = json.loads(file.readline())["threads"]

    def run(self):
        created = interpreters.create(**OPTIONS)
        self.number = int(created)  # 3.8 to 3.12 hand out an object
        source = self.source.format(
            path=sys.path, number=self.number, hold=self.hold_read, tell=self.tell
        )
        failure = interpreters.run_string(created, source)
        os.close(self.tell)
        if failure:
            raise RuntimeError(failure)
        interpreters.destroy(created)

    def end(self):
        os.close(self.hold)
        self.thread.join()


def two():
    inside = [Inside(), Inside()]
    result = target.park(
        interpreter=0,
        others=inside[0].truths + inside[1].truths,
        interpreters=[one.number for one in inside],
        callers=[one.thread.native_id for one in inside],
    )
    for one in inside:
        one.end()
    return result


def own_gils():
    """Two sub-interpreters and a thread of the main one, each always at work."""
    leave = threading.Event()

    def spin():
        while not leave.is_set():
            pass

    inside = [Inside(SPINNING), Inside(SPINNING)]
    spinner = threading.Thread(target=spin)
    spinner.start()
    result = target.park(
        frames=False,
        spinners=[[spinner.native_id, 0]] + [[one.thread.native_id, one.number] for one in inside],
    )
    leave.set()
    for one in inside:
        one.end()
    spinner.join()
    return result


def ended():
    created = interpreters.create()
    interpreters.run_string(created, "import threading")
    interpreters.destroy(created)
    return target.park(interpreter=0)


CASES = {"two": two, "own_gils": own_gils, "ended": ended}

if __name__ == "__main__":
    target.run(CASES)
