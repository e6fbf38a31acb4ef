"""One case a function: threads of every kind, what they wait for, who holds the GIL,
collections."""

import _thread
import ctypes
import gc
import os
import select
import signal
import socket
import threading
import time

import target

stop = threading.Event()
tids = {}


def noted(name, function):
    """A thread that has written its id under that name before it goes on to the function."""
    started = threading.Event()

    def body():
        tids[name] = threading.get_native_id()
        started.set()
        function()

    thread = threading.Thread(target=body, name=name, daemon=True)
    thread.start()
    started.wait()
    return thread


def park_with_tids():
    tids["main"] = threading.get_native_id()
    result = target.park(frames=False, tids=tids)
    stop.set()
    return result


# --- names ----------------------------------------------------------------------------------------


def names():
    for name in ("été", "変数", "a𐌀🐍", "n" * 300, "\"\\\n\x1b[31m", " spaces ", "a;b c", None):
        target.start(target.stay, name=name)
    return target.park()


def renamed():
    def late(name):
        threading.current_thread().name = name
        target.stay()

    for name in ("", "changed", "変" * 40):
        target.start(late, name, name="before")
    threading.current_thread().name = "main changed"
    return target.park()


def sharing_code():
    """One function in three threads, each at a line of its own after it has become warm."""

    def shared(turn):
        for _ in range(10000):
            turn += 0
        if turn == 0:
            target.stay()
        elif turn == 1:
            target.stay()
        else:
            target.stay()

    for turn in range(3):
        target.start(shared, turn)
    return target.park()


class SetBefore(threading.Thread):
    def __init__(self, **options):
        self.first = 1
        super().__init__(**options)


class Slotted(threading.Thread):
    __slots__ = ("first", "second")


def instances():
    """threading.Thread objects whose attributes CPython keeps in different places."""

    def begin(thread):
        thread.daemon = True
        thread.start()
        target.wait_for_stay()

    def thread(kind=threading.Thread, name="ordinary"):
        return kind(target=target.stay, name=name)

    begin(thread())
    begin(thread(SetBefore, "set before"))
    begin(thread(Slotted, "slotted"))

    materialised = thread(name="materialised")
    materialised.seen = len(vars(materialised))
    begin(materialised)

    crowded = thread(name="crowded")
    for number in range(100):
        setattr(crowded, "attribute_%d" % number, number)
    begin(crowded)

    replaced = thread(name="replaced")
    replaced.__dict__ = dict(replaced.__dict__)
    begin(replaced)

    moved = thread(name="moved")
    del moved._name
    moved._name = "moved later"
    begin(moved)

    odd = thread(name="odd keys")
    odd.__dict__[1] = 2
    begin(odd)
    return target.park()


def dummy():
    def unknown_to_threading():
        target.stay()

    _thread.start_new_thread(unknown_to_threading, ())
    target.wait_for_stay()
    return target.park()


def raw():
    def body():
        told.append(threading.get_native_id())
        ready.release()
        os.read(quiet, 1)

    told, ready = [], threading.Semaphore(0)
    quiet, end = os.pipe()
    _thread.start_new_thread(body, ())
    ready.acquire()
    result = target.park(raw_tid=told[0])
    os.close(end)
    return result


def many(count):
    threading.stack_size(1 << 18)
    for number in range(int(count)):
        target.start(target.stay, name="many %d" % number)
    return target.park()


def churned():
    for _ in range(300):
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()
    for _ in range(10):
        target.start(target.stay)
    return target.park()


def c_thread(routine):
    pthread = ctypes.c_ulong()
    ctypes.CDLL(None).pthread_create(ctypes.byref(pthread), None, routine, None)
    return pthread


def foreign():
    kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)

    def called_from_c(unused):
        target.stay()

    routine = kind(called_from_c)
    pthread = c_thread(routine)
    target.wait_for_stay()
    result = target.park()
    ctypes.CDLL(None).pthread_join(pthread, None)
    return result


def without_python():
    c_thread(ctypes.cast(ctypes.CDLL(None).pause, ctypes.c_void_p))
    return target.park()


def after_fork():
    """The child of a fork in a secondary thread, which has become its main thread."""
    status = []

    def forks():
        child = os.fork()
        if child == 0:
            target.park(pid=os.getpid())
            os._exit(0)
        status.append(os.waitpid(child, 0)[1])

    thread = threading.Thread(target=forks, name="forks")
    thread.start()
    thread.join()
    return 42 if status == [0] else 0


def after_fork_of_c():
    """A fork that Python did not see: its thread's number there is still the parent's."""
    child = ctypes.PyDLL(None).fork()
    if child == 0:
        target.park(pid=os.getpid())
        os._exit(0)
    return 42 if os.waitpid(child, 0)[1] == 0 else 0


# --- GIL and states -------------------------------------------------------------------------------


def spin():
    while not stop.is_set():
        pass


def spinning():
    noted("sleeper", stop.wait)
    noted("spinner", spin)
    return park_with_tids()


def two_spinning():
    noted("spin 1", spin)
    noted("spin 2", spin)
    return park_with_tids()


def holding():
    """The holder keeps the GIL in a system call, from when the main thread stands in its last
    read."""

    def hold():
        poll = ctypes.PyDLL(None).poll
        end = (ctypes.c_int * 2)(target.GO, 0)
        with open("/proc/self/task/%d/syscall" % os.getpid()) as file:
            while file.read().split()[1:2] != [hex(target.GO)]:
                file.seek(0)
        poll(end, 1, -1)

    noted("first", spin)
    noted("second", spin)
    noted("holder", hold)
    return park_with_tids()


def churning():
    """Threads are born and end all the time, while the main thread stands still."""

    def churn():
        while not stop.is_set():
            threads = [threading.Thread(target=int) for _ in range(5)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    churner = noted("churner", churn)
    result = park_with_tids()
    churner.join()
    return result


def signalled():
    """A thread takes each signal from the kernel itself: none can come while nobody waits for
    it."""

    def take():
        while True:
            target.say(signal=signal.sigwait({signal.SIGUSR1}))

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    noted("taker", take)
    return park_with_tids()


def crowded():
    crypt = ctypes.CDLL("libcrypt.so.1").crypt  # which needs no GIL

    def crowd():  # for minutes
        crypt(b"x", b"$6$rounds=999999999$salt")

    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    for number in range(3):
        noted("crowd %d" % number, crowd)
    return park_with_tids()


def wait_sleep():
    time.sleep(600)


def wait_lock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def wait_timed_lock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=600)


def wait_condition():
    condition = threading.Condition()
    with condition:
        condition.wait()


def wait_join():
    noted("joined", stop.wait).join()


def wait_read():
    os.read(os.pipe()[0], 1)


def wait_receive():
    first, second = socket.socketpair()
    first.recv(1)
    second.close()


def wait_accept():
    listening = socket.socket(socket.AF_UNIX)
    listening.bind("")
    listening.listen(1)
    listening.accept()


def wait_select():
    select.select([os.pipe()[0]], [], [])


def wait_poll():
    poll = select.poll()
    poll.register(os.pipe()[0], select.POLLIN)
    poll.poll()


def wait_epoll():
    select.epoll().poll()


def wait_child():
    child = os.fork()
    if child == 0:
        target.wait_for_go()
        os._exit(0)
    os.waitpid(child, 0)


def wait_vfork():
    """The child shares nothing with us, and ends with our process group."""
    libc, stack, clone_vfork = ctypes.CDLL(None), ctypes.create_string_buffer(1 << 16), 0x4000
    libc.clone(libc.pause, ctypes.byref(stack, 1 << 15), clone_vfork | signal.SIGCHLD, None)


def waiting(name):
    noted("waiter", globals()["wait_" + name])
    return park_with_tids()


# --- collections ----------------------------------------------------------------------------------


def collecting():
    heap = [[] for _ in range(2000000)]

    def collect_always():
        while not stop.is_set():
            gc.collect()

    collector = noted("collector", collect_always)
    result = park_with_tids()
    collector.join()
    return result if len(heap) == 2000000 else 0


def finalizing():
    results = []

    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            results.append(target.park())

    gc.collect()
    Cycle()
    gc.collect()
    return results[0]


CASES = {name: case for name, case in list(globals().items()) if callable(case)}

if __name__ == "__main__":
    target.run(CASES)
