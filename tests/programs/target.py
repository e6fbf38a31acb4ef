"""What every target shares: it declares its own stacks, says "ready" through a pipe, stands
still until it is let go, and says "finished" at the end. The truth comes from the interpreter
itself, from inside."""

import json
import os
import sys
import threading

READY, GO = (int(number) for number in os.environ["TARGET_PIPES"].split(","))

_staying = threading.Semaphore(0)
_leave = threading.Event()
_truths = []


def truth_of(frame):
    """[name, file, line, column] of each frame, innermost first; column 0 where CPython knows
    none."""
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


def truth_of_thread(frame, **facts):
    return dict(
        facts,
        tid=threading.get_native_id(),
        ident=threading.get_ident(),
        name=threading.current_thread().name,
        frames=truth_of(frame),
    )


def say(**facts):
    data = (json.dumps(facts) + "\n").encode("ascii")
    while data:
        data = data[os.write(READY, data) :]


def wait_for_go():
    while os.read(GO, 1):
        pass


def stay(**facts):
    """A thread's last call: declares its stack and stands still until the main thread is let go."""
    _truths.append(truth_of_thread(sys._getframe(1), **facts))
    _staying.release()
    _leave.wait()


def start(function, *args, **options):
    """A thread that will call stay(); returns when it has."""
    options.setdefault("daemon", True)
    thread = threading.Thread(target=function, args=args, **options)
    thread.start()
    wait_for_stay()
    return thread


def wait_for_stay():
    _staying.acquire()


def park(frames=True, others=(), interpreter=None, **facts):
    """The main thread's (or the only one's) last call: declares all stacks, then stands still."""
    if frames:
        _truths.append(truth_of_thread(sys._getframe(1), interpreter=interpreter))
    _truths.extend(others)
    say(threads=_truths, parked=threading.get_native_id(), **facts)
    wait_for_go()
    _leave.set()
    return 42


def run(cases):
    """Runs the case that the command line names and reports its result."""
    result = cases[sys.argv[1]](*sys.argv[2:])
    say(result=result)
