"""What an injection meets, by the case: it waits, and for each byte that comes through the pipe it
does one thing more. At its end its result is right."""

import _imp
import ctypes
import json
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time

import target

BLOCK, TIMES = 30000, 2000
kept = []


def wait_for_step():
    return os.read(target.GO, 1)


def allocate():
    line = sys._getframe().f_lineno + 1
    kept.append([bytes(BLOCK) for _ in range(TIMES)])
    return {"line": line, "size": TIMES * sys.getsizeof(bytes(BLOCK))}


def steps():
    target.say(pid=os.getpid())
    while wait_for_step():
        target.say(**allocate())


def growing():
    """In steps that its allocator has to move most blocks for."""
    piece = bytes(60)
    target.say(pid=os.getpid())
    while wait_for_step():
        grown = [bytearray(100) for _ in range(3000)]
        before = sum(map(sys.getsizeof, grown))
        line = sys._getframe().f_lineno + 3
        for one in grown:
            for _ in range(60):
                one += piece
        target.say(line=line, size=sum(map(sys.getsizeof, grown)) - before)
        kept.append(grown)


def traced():
    """Between its steps others look at its allocators, too."""
    import tracemalloc
    target.say(pid=os.getpid())
    for act in (tracemalloc.start, tracemalloc.stop, tracemalloc.start):
        wait_for_step()
        act()
        target.say(**allocate())
    target.wait_for_go()
    tracemalloc.stop()


def lines():
    """Counts all of its lines by itself."""
    import memory_lines
    target.say(pid=os.getpid())
    wait_for_step()
    memory_lines.run()
    target.say(account=memory_lines.account)
    target.wait_for_go()


def asleep():
    """Every thread, each in another call."""
    leave, lock, ends = threading.Event(), threading.Lock(), os.pipe()
    lock.acquire()

    def sleep():
        while not leave.is_set():
            time.sleep(0.1)

    works = [leave.wait, lock.acquire, sleep, lambda: os.read(ends[0], 1)]
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    steps()
    leave.set()
    lock.release()
    os.write(ends[1], b"x")
    for thread in threads:
        thread.join()


def keep_words():
    """What goes to standard error, from now on."""
    words = os.memfd_create("words")
    os.dup2(words, 2)
    return lambda: os.pread(words, 1 << 16, 0).decode()


def watchers(events):
    """Who would hear of a script, and let nobody run one."""
    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p)
    def forbid(event, *_):
        if event != b"cpython.remote_debugger_script":
            return 0
        events.append(event.decode())
        return -1

    kept.append(forbid)

    def trace(frame, event, _):
        if "remote" in frame.f_code.co_filename or frame.f_code.co_filename == "<string>":
            events.append(event)

    return {"audit": lambda: ctypes.pythonapi.PySys_AddAuditHook(forbid, None),
            "trace": lambda: sys.settrace(trace), "profile": lambda: sys.setprofile(trace)}


def watched(kind):
    events, words = [], keep_words()
    watchers(events)[kind]()
    target.say(pid=os.getpid())
    while not select.select([target.GO], [], [], 0)[0]:
        sum(range(100))
    wait_for_step()
    sys.settrace(None)
    sys.setprofile(None)
    target.say(events=events, words=words())
    target.wait_for_go()
    target.say(result=42)
    os._exit(0)  # a hook is called to the very end, and this one is Python


class Rung(Exception):
    pass


def rung():
    """A signal comes while a script runs: what its handler raises arrives in the program."""
    counts, words, load = {"rung": 0, "caught": 0}, keep_words(), _imp.create_dynamic

    def ring(*_):
        counts["rung"] += 1
        raise Rung

    def load_and_ring(spec, *rest):
        try:
            return load(spec, *rest)
        finally:
            signal.raise_signal(signal.SIGALRM)

    _imp.create_dynamic = load_and_ring
    signal.signal(signal.SIGALRM, ring)
    handler = signal.getsignal(signal.SIGINT)
    target.say(pid=os.getpid())
    while not select.select([target.GO], [], [], 0)[0]:
        try:
            for _ in range(1000):
                sum(range(100))
        except Rung as error:
            counts["caught"] += isinstance(error.__context__, ImportError)
    wait_for_step()
    target.say(words=words(), same=signal.getsignal(signal.SIGINT) is handler, **counts)
    target.wait_for_go()


def asked(busy):
    """Tells of each script that its Python was asked to run, and of what is imported since."""
    events, leave, load = [], threading.Event(), _imp.create_dynamic

    def hear(spec, *rest):
        events.append(spec.name)
        return load(spec, *rest)

    _imp.create_dynamic = hear
    before = set(sys.modules)

    def work():
        while not leave.is_set():
            sum(range(100))

    thread = threading.Thread(target=work if int(busy) else leave.wait)
    thread.start()
    target.say(pid=os.getpid())
    while wait_for_step():
        facts = allocate()
        target.say(asked=len(events), imported=sorted(set(sys.modules) - before), **facts)
    leave.set()
    thread.join()


def storm():
    """Eight threads that never stop to allocate."""
    leave, wrong = threading.Event(), []

    def work(number):
        while not leave.is_set():
            rows = [bytes((number + index) % 7 * 100) for index in range(200)]
            parts = [bytearray(size) for size in (10, 1000, 100000, 300000)]
            if sum(map(len, rows)) != sum((number + index) % 7 * 100 for index in range(200)):
                wrong.append(number)
            del rows, parts

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    target.say(pid=os.getpid())
    target.wait_for_go()
    leave.set()
    for thread in threads:
        thread.join()
    kept.extend(wrong)


def child():
    """Which allocates, after its parent was attached to, and stays for the step."""
    target.say(pid=os.getpid())
    while wait_for_step():
        (ready, write), (stay, leave) = os.pipe(), os.pipe()
        pid = os.fork()
        if not pid:
            os.close(leave)
            facts = allocate()
            os.write(write, struct.pack("qq", facts["line"], facts["size"]))
            os.read(stay, 1)
            os._exit(0)
        line, size = struct.unpack("qq", os.read(ready, 16))
        target.say(line=line, size=size, child=pid)
        target.wait_for_go()
        for end in (ready, write, stay, leave):
            os.close(end)
        os.waitpid(pid, 0)


def family():
    """A child that lives as long, and was there when its parent was let go."""
    target.say(pid=os.getpid())
    wait_for_step()
    ends = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(ends[1])
        os.read(ends[0], 1)
        os._exit(0)
    target.say(child=pid, **allocate())
    target.wait_for_go()
    os.write(ends[1], b"x")
    os.waitpid(pid, 0)


def below():
    """Allocates for each line that comes."""
    for _ in sys.stdin:
        print(json.dumps(allocate()), flush=True)


def above(*begin):
    """Its child is another program; there from the beginning, or from the first step on."""
    def start():
        return subprocess.Popen([sys.executable, __file__, "below"], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, universal_newlines=True)

    process = start() if begin else None
    target.say(pid=os.getpid())
    wait_for_step()
    process = process or start()
    target.say(child=process.pid)
    while wait_for_step():
        process.stdin.write("go on\n")
        process.stdin.flush()
        target.say(**json.loads(process.stdout.readline()))
    process.communicate()


def late():
    """A library that is loaded afterwards allocates by itself, when it has been noticed."""
    target.say(pid=os.getpid())
    wait_for_step()
    import sqlite3
    target.say(loaded="sqlite3")
    wait_for_step()
    database = sqlite3.connect(":memory:")
    database.execute("create table t (b)")
    database.executemany("insert into t values (randomblob(8000))", [()] * 2000)
    line = sys._getframe().f_lineno - 1
    target.say(line=line, size=2000 * 8000)
    target.wait_for_go()
    database.close()


class Objects:
    """The loader's list of objects, gone through as by threadpoolctl: a lock is held meanwhile."""

    def __init__(self):
        self.libc, self.leave, self.rounds = ctypes.CDLL(None), threading.Event(), 0
        self.visit = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t,
                                      ctypes.c_void_p)(lambda *_: self.hear())

    def hear(self):
        return 0

    def walk(self):
        while not self.leave.is_set():
            self.libc.dl_iterate_phdr(self.visit, None)
            self.rounds += 1
            time.sleep(0.001)


def walked():
    """One thread goes through them, and waits for the GIL in between, which others have."""
    objects, leave = Objects(), threading.Event()

    def work():
        while not leave.is_set():
            bytearray(9000)
            sum(range(30000))

    threads = [threading.Thread(target=each) for each in (objects.walk, work)]
    for thread in threads:
        thread.start()
    target.say(pid=os.getpid())
    while wait_for_step():
        before = objects.rounds
        facts = allocate()
        while objects.rounds == before:
            time.sleep(0.001)
        target.say(**facts)
    leave.set()
    objects.leave.set()
    for thread in threads:
        thread.join()


def held():
    """One thread stays in the loader from one step to the next."""
    objects, go_on, there = Objects(), threading.Event(), threading.Event()

    def stay():
        there.set()
        go_on.wait()
        objects.leave.set()
        return 1

    objects.hear = stay
    target.say(pid=os.getpid())
    wait_for_step()
    target.say(**allocate())
    wait_for_step()
    thread = threading.Thread(target=objects.walk)
    thread.start()
    there.wait()
    target.say(**allocate())
    wait_for_step()
    go_on.set()
    thread.join()
    target.say(**allocate())
    target.wait_for_go()


def forking():
    """Children that allocate, begun while other threads hold the lock of the loader's list."""
    libc, leave = ctypes.CDLL(None), threading.Event()

    def walk():
        while not leave.is_set():
            libc.dl_iterate_phdr(libc.sched_yield, None)
            sum(range(1000))

    threads = [threading.Thread(target=walk) for _ in range(2)]
    for thread in threads:
        thread.start()
    target.say(pid=os.getpid())
    while wait_for_step():
        for _ in range(100):
            pid = os.fork()
            if not pid:
                signal.alarm(20)
                for _ in range(300):
                    bytearray(8000)
                os._exit(0)
            if os.waitpid(pid, 0)[1]:
                kept.append("a child that hung")
        target.say(**allocate())
    leave.set()
    for thread in threads:
        thread.join()


def parts(library):
    """What only C does: frees through tables of functions, by the step."""
    native = ctypes.CDLL(library)
    target.say(pid=os.getpid())
    while wait_for_step():
        line = sys._getframe().f_lineno + 1
        native.parts_pass(ctypes.c_size_t(100000), 300)
        target.say(line=line, size=900 * 100000)


def operators(library):
    """C++'s new and delete, by the step."""
    native = ctypes.CDLL(library)
    target.say(pid=os.getpid())
    while wait_for_step():
        line = sys._getframe().f_lineno + 1
        size = native.operators_pass("mimalloc" not in os.environ["LD_PRELOAD"])
        target.say(line=line, size=size)


def native_storm(library):
    """Threads of C allocate, others of Python, and children are begun all the while."""
    native, leave = ctypes.CDLL(library), threading.Event()

    def fork():
        while not leave.is_set():
            pid = os.fork()
            if not pid:
                signal.alarm(20)
                for _ in range(30):
                    bytearray(8000)
                os._exit(0)
            if os.waitpid(pid, 0)[1]:
                kept.append("a child that did not end well")
            time.sleep(0.005)

    native.parts_storm()
    thread = threading.Thread(target=fork)
    thread.start()
    target.say(pid=os.getpid())
    while wait_for_step():
        target.say(**allocate())
    leave.set()
    thread.join()
    if native.parts_calm():
        kept.append("blocks that others wrote to")


def untraced():
    """Its allocators were others when it was attached to."""
    import tracemalloc
    tracemalloc.start()
    target.say(pid=os.getpid())
    for act in (tracemalloc.stop, *[lambda: None] * 2):
        wait_for_step()
        act()
        target.say(**allocate())
    target.wait_for_go()


def filtered(*forbidden):
    """Its calls go through a filter that ends it for some of them."""
    libc = ctypes.CDLL(None, use_errno=True)
    kill, allow, load, ret, jump = 0x80000000, 0x7fff0000, 0x20, 0x06, 0x15
    rows = [(load, 0, 0, 0), *((jump, len(forbidden) - at, 0, int(number))
                               for at, number in enumerate(forbidden)),
            (ret, 0, 0, allow), (ret, 0, 0, kill)]
    filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    program = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(rows), ctypes.addressof(filters)))
    no_new_privileges, set_seccomp, mode_filter = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(set_seccomp, mode_filter, program):
        target.say(error=ctypes.get_errno())
    steps()


{"steps": steps, "growing": growing, "lines": lines, "asleep": asleep, "storm": storm,
 "child": child, "late": late, "filtered": filtered, "traced": traced, "family": family,
 "asked": asked, "watched": watched, "rung": rung, "walked": walked, "held": held,
 "forking": forking, "parts": parts, "operators": operators, "native_storm": native_storm,
 "untraced": untraced, "above": above, "below": below}[sys.argv[1]](*sys.argv[2:])
if sys.argv[1] == "below":
    sys.exit()
target.say(result=kept[-1] if kept and not isinstance(kept[-1], list) else 42)
