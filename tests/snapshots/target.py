"""The program whose memory the images hold. Every thread builds its stack, tells it as the
interpreter itself sees it, and stands still. It runs from a text, not a file, so that no path of
the recording machine gets into a golden stack."""

import _thread
import functools
import json
import os
import sys
import threading

truths = []
forever = _thread.allocate_lock()
forever.acquire()
told = threading.Semaphore(0)


def truth_of(frame):
    """[name, file, line, column] of each frame, innermost first; column 0: CPython knows none."""
    frames = []
    while frame is not None:
        code = frame.f_code
        column = 0
        if hasattr(code, "co_positions"):
            positions = list(code.co_positions())[frame.f_lasti // 2]
            column = 0 if positions[2] is None else positions[2] + 1
        name = getattr(code, "co_qualname", code.co_name)
        frames.append([name, code.co_filename, frame.f_lineno, column])
        frame = frame.f_back
    return frames


def tell():
    truths.append([threading.current_thread().name, truth_of(sys._getframe(2))])


def stay():
    """A thread's last call."""
    tell()
    told.release()
    forever.acquire()


def name_files_without_folder(module):
    """The functions of a module of the library forget where on this machine it lies."""
    owners = [module] + [value for value in vars(module).values() if isinstance(value, type)]
    for owner in owners:
        for value in list(vars(owner).values()):
            if hasattr(value, "__code__"):
                file = os.path.basename(value.__code__.co_filename)
                value.__code__ = value.__code__.replace(co_filename=file)


# ---- stacks ----


class Figure:
    class Größe:
        @staticmethod
        def messen(then):
            return then()

        @classmethod
        def 测量(cls, then):
            return cls.messen(
                lambda: then(),
            )

    def __init__(self, then):
        self.then = then

    def __lt__(self, other):
        return self.Größe.测量(self.then)

    def 𐌰𐌱(self, count):
        if count:
            return (
                1
                + self.𐌰𐌱(count - 1)
            )
        return functools.reduce(lambda a, b: self.then(), [1, 2])


def generators():
    def numbers(count):
        yield count
        if count:
            yield from numbers(count - 1)
        else:
            stay()

    def doubled():
        for number in numbers(3):
            yield 2 * number

    return sum(doubled())


def coroutines():
    async def leaf():
        stay()

    class Awaited:
        def __await__(self):
            yield from leaf().__await__()

    async def middle(*words, **options):
        await Awaited()

    async def root():
        async with Manager():
            await middle("a", b="c")

    class Manager:
        async def __aenter__(self):
            return self

        async def __aexit__(self, *reasons):
            return None

    root().send(None)


def wide_frames():
    """So many locals that the frames fill more than one chunk of the data stack."""
    text = (
        "def wide(depth):\n"
        "    %s = depth\n"
        "    return wide(depth - 1) if depth else stay()\n"
    ) % " = ".join("v%d" % i for i in range(200))
    space = {"stay": stay}
    exec(compile(text, "wide.py", "exec"), space)
    space["wide"](11)


def sorting():
    figures = [Figure(stay), Figure(stay)]
    sorted(figures)


def calling():
    Figure(stay).𐌰𐌱(3)


def in_class_body():
    class Body:
        words = [stay() for i in range(2)]


def unwinding():
    try:
        raise ValueError
    except ValueError:
        with open(os.devnull):
            stay()


def start(name, function):
    threading.Thread(target=function, name=name, daemon=True).start()
    told.acquire()


def park():
    """The main thread's last call."""
    tell()
    os.write(1, json.dumps(truths).encode("ascii") + b"\n")
    os.read(0, 1)


name_files_without_folder(threading)
start("plain", in_class_body)
start("Zoë", generators)
start("Ωmega-поток-线程", coroutines)
start("🐍 snake", calling)
start("wide", wide_frames)
start("", sorting)
start("x" * 80, unwinding)
max([1, 2], key=lambda number: park())
