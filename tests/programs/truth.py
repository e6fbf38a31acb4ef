"""Times its own lines, by its thread's CPU clock and by the wall clock, until it has worked and
waited for as many seconds as it is told, and prints its account: which line took how long, in which
kind of work or wait. Where others have the cores, a wait ends later than what is waited for: for so
long the process was not idle, and the kernel's account of that is taken off.

A pass over a line takes a millisecond or some, a visit a random number of passes: nothing keeps
step with a sampler."""

import hashlib
import json
import os
import queue
import random
import re
import resource
import socket
import subprocess
import sys
import threading
import time
import zlib

try:
    import numpy
except ImportError:
    numpy = None

WORK_S = 0.001  # of a pass over a line that works, about
WORK_PASSES, WAIT_PASSES = 100, 20  # of a visit, on average

WAITS = ("sleep", "lock", "io", "child")

chance = random.Random(7)
account = {}  # by line
queues = []  # of the two threads that take turns in waiting for each other
ends_contest = threading.Event()


class Line:
    def __init__(self, kind):
        self.kind, self.cpu_s, self.wall_s, self.idle_s = kind, 0.0, 0.0, 0.0

    def add(self, since):
        cpu_s, wall_s, queued_s = (now - then for now, then in zip(moment(), since))
        self.cpu_s += cpu_s
        self.wall_s += wall_s
        self.idle_s += wall_s - queued_s


def follow_queue():
    """From now on it counts how long this thread is kept from a core."""
    path = "/proc/self/task/%d/schedstat" % threading.get_native_id()
    queues.append(os.open(path, os.O_RDONLY))


def moment():
    queued_ns = sum(int(os.pread(queue, 100, 0).split()[1]) for queue in queues)
    return time.thread_time(), time.perf_counter(), queued_ns / 1e9


def line_of(caller, kind):
    return account.setdefault(caller.f_lineno + 1, Line(kind))


def passes(kind, turns=0):
    """One visit: what the caller does until it comes back for the last time is its next line's."""
    line = line_of(sys._getframe(1), kind)
    since = moment()
    for _ in range(1 + int(chance.expovariate(1 / WORK_PASSES))):
        yield turns
    line.add(since)


def waits(kind, prepare):
    """The same, with something to prepare that does not count."""
    line = line_of(sys._getframe(1), kind)
    for _ in range(1 + int(chance.expovariate(1 / WAIT_PASSES))):
        prepared = prepare()
        since = moment()
        yield prepared
        line.add(since)


def fit(function, *arguments):
    """How often to call it for WORK_S."""
    count, elapsed = 1, 0.0
    while elapsed < WORK_S:
        count *= 2
        start = time.thread_time()
        for _ in range(count):
            function(*arguments)
        elapsed = time.thread_time() - start
    return max(1, int(count * WORK_S / elapsed))


# --- on a CPU: Python -----------------------------------------------------------------------------

TURNS = fit(lambda: None)


def while_loop():
    for n in passes("python", TURNS):
        while n: n -= 1


def comprehension():
    for _ in passes("python"):
        [n + n for n in range(TURNS)]


def python_calls():
    for _ in passes("python"):
        [(lambda: None)() for _ in range(TURNS // 4)]


# --- on a CPU: native -----------------------------------------------------------------------------

BYTES = random.Random(1).getrandbits(8 << 20).to_bytes(1 << 20, "big")
TEXT = json.dumps([{"key %d" % n: [n, str(n), n / 7]} for n in range(1000)])
PATTERN = re.compile(r'"(\w+) (\d+)": \[([^\]]*)\]')
FLOATS = [chance.random() for _ in range(4000)]
NAMES = [str(n) for n in range(1000)]


def compress():
    for _ in passes("native"):
        zlib.compress(BYTES[:40000])


def digest():
    for _ in passes("native"):
        hashlib.sha256(BYTES).digest()


def search():
    """What it found is freed by the interpreter itself: a line, but not of one kind."""
    for _ in passes("cpu"):
        PATTERN.findall(TEXT)


def parse():
    for _ in passes("cpu"):
        json.loads(TEXT)


def sort():
    for _ in passes("native"):
        sorted(FLOATS)


def array_sort():
    array = numpy.array(FLOATS)
    for _ in passes("native"):
        numpy.sort(array)


def array_arithmetic():
    array = numpy.array(FLOATS * 50)
    for _ in passes("native"):
        numpy.sqrt(numpy.add(array, 1, out=array), out=array)


def short_calls():
    for _ in passes("cpu"):
        [hash(name) for name in NAMES for _ in range(20)]


# --- on a CPU: kernel -----------------------------------------------------------------------------

FILE = os.memfd_create("truth")
PIPE = os.pipe()
PIECE = BYTES[:65536]  # cut once: to copy it is native work


def file_write():
    for _ in passes("kernel"):
        [os.pwrite(FILE, BYTES, 0) for _ in range(8)]


def pipe_write():
    for _ in passes("kernel"):
        [os.read(PIPE[0], os.write(PIPE[1], PIECE)) for _ in range(20)]


# --- off the CPU ----------------------------------------------------------------------------------

LOCK = threading.Lock()  # always held
ENDS = socket.socketpair()
jobs = queue.SimpleQueue()


def helper():
    follow_queue()
    while True:
        delay, act, *arguments = jobs.get()
        time.sleep(delay)
        act(*arguments)


def pause_length():
    return chance.uniform(0.001, 0.01)


def release_later():
    jobs.put((pause_length(), LOCK.release))


def child():
    return subprocess.Popen(["sleep", str(pause_length())])


def sleep():
    for length in waits("sleep", pause_length):
        time.sleep(length)


def lock():
    for _ in waits("lock", release_later):
        LOCK.acquire()


def receive():
    for _ in waits("io", lambda: jobs.put((pause_length(), ENDS[0].send, b"x"))):
        ENDS[1].recv(1)


def wait_child():
    for waited in waits("child", child):
        waited.wait()


def sleeper():
    """Never wakes up."""
    line_of(sys._getframe(), "asleep")
    time.sleep(3600)


# --- two that want the GIL ------------------------------------------------------------------------


def rival():
    while not ends_contest.is_set():
        for n in passes("rival", TURNS):
            while n: n -= 1


def contest():
    ends_contest.clear()
    thread = threading.Thread(target=rival)
    thread.start()
    for n in passes("gil", TURNS):
        while n: n -= 1
    ends_contest.set()
    thread.join()


VISITS = [
    while_loop, comprehension, python_calls, compress, digest, search, parse, sort, short_calls,
    file_write, pipe_write, sleep, lock, receive, wait_child, contest,
] + [array_sort, array_arithmetic] * bool(numpy)


def progress():
    """Seconds that went by, without those in which others had the cores."""
    waited = sum(line.wall_s for line in account.copy().values() if line.kind in WAITS)
    return time.process_time() + waited


def charged(tid):
    """The kernel's account of a thread: of one that sleeps what it took to begin, and more where
    the machine itself had no core then."""
    with open("/proc/self/task/%d/schedstat" % tid) as file:
        return int(file.read().split()[0]) / 1e9


def main(seconds):
    LOCK.acquire()
    follow_queue()
    threading.Thread(target=helper, daemon=True).start()
    sleeping = threading.Thread(target=sleeper, name="sleeper", daemon=True)
    sleeping.start()
    begun = time.perf_counter()
    end = time.perf_counter() + 2 * seconds
    while progress() < seconds and time.perf_counter() < end:
        for visit in chance.sample(VISITS, len(VISITS)):
            visit()
    print(json.dumps({
        "lines": {number: vars(line) for number, line in account.items()},
        "slept_s": time.perf_counter() - begun,
        "sleeper_s": charged(sleeping.native_id),
        "process_s": time.process_time(),
        "children_s": sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]),
        "gil": getattr(sys, "_is_gil_enabled", lambda: True)(),
    }), flush=True)
    os._exit(0)  # what the interpreter does at its end would count, too


if __name__ == "__main__":
    main(float(sys.argv[1]))
