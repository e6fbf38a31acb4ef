"""Live tests: starts targets (in an interpreter's root folder, where it has one), runs
`scalene-attach dump` on them and compares with what the interpreter says of itself from inside.

Environment: SCALENE_ATTACH (the program), SCALENE_TARGET_RELEASE ("3.8" ... "3.14t"), and as in
installed.py."""

import contextlib
import ctypes
import glob
import json
import os
import platform
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import unittest

from installed import PATIENCE_S, PROGRAMS, enter_own_mounts, interpreters, mount_into

ALL_SKIPPED = 77  # the exit status that ctest counts as skipped
SCALENE_ATTACH = os.environ.get("SCALENE_ATTACH", "scalene-attach")
RELEASE = os.environ.get("SCALENE_TARGET_RELEASE", "%d.%d" % sys.version_info[:2])
OWN_FAILURE = 125
USAGE = 2

THREAD_KEYS = {"tid", "ident", "name", "interpreter", "state", "holds_gil", "frames"}
FRAME_KEYS = {"kind", "name", "file", "line"}
# What target.py stands still in, innermost first: nothing else may be seen there.
STANDS_IN = {
    "park": [("wait_for_go", "target.py")],
    "stay": [("wait", "threading.py"), ("wait", "threading.py")],
}
STATES = {"running", "stopped", "gil", "cpu", "lock", "io", "sleep", "child", "gpu", "other"}

# What a blocked thread stands in, by the kernel's numbers.
SYSCALLS = {
    "x86_64": {"read": 0, "poll": 7, "select": 23, "nanosleep": 35, "recvfrom": 45, "wait4": 61,
               "futex": 202, "clock_nanosleep": 230, "epoll_wait": 232, "waitid": 247,
               "pselect6": 270, "ppoll": 271, "epoll_pwait": 281, "accept4": 288, "accept": 43},
    "aarch64": {"epoll_pwait": 22, "read": 63, "pselect6": 72, "ppoll": 73, "waitid": 95,
                "futex": 98, "nanosleep": 101, "clock_nanosleep": 115, "accept": 202,
                "recvfrom": 207, "accept4": 242, "wait4": 260},
}[platform.machine()]


# --- targets --------------------------------------------------------------------------------------


def read_text(path):
    with open(path) as file:
        return file.read()


def thread_texts(pid, name):
    """What that file says of each thread which is still there."""
    texts = {}
    for path in sorted(glob.glob("/proc/%d/task/*/%s" % (pid, name))):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            texts[int(path.split("/")[4])] = read_text(path)
    return texts


def children_of(pid):
    return [int(word) for text in thread_texts(pid, "children").values() for word in text.split()]


def build_c(test, output, source, *words, by=None):
    """A program or library of tests/programs, of C or C++, for this system, or `by` a compiler for
    another."""
    variable, *names = ("CXX", "c++", "g++") if source.endswith(".cpp") else ("CC", "cc", "gcc")
    wanted = [by] if by else [os.environ.get(variable, names[0]), names[1]]
    compiler = next(filter(None, map(shutil.which, wanted)), None)
    if not compiler:
        test.skipTest("needs %s" % (by or "a compiler of %s" % source))
    subprocess.run([compiler, "-O1", "-o", output, os.path.join(PROGRAMS, source), *words],
                   check=True)


class Target:
    """A program of tests/programs that has said that it is ready. `pid` is ours, not its own."""

    def __init__(self, program, *arguments, interpreter=None, prefix=(), command=None,
                 env=None, alone=True, flags=()):
        self.interpreter = interpreter or CURRENT
        go_read, self.go = os.pipe()
        ready, ready_write = os.pipe()
        script = self.interpreter.inner(os.path.join(PROGRAMS, program))
        command = command or self.interpreter.command()
        self.process = subprocess.Popen(
            [*prefix, *command, *flags, script, *map(str, arguments)],
            pass_fds=(go_read, ready_write),
            start_new_session=True,
            env=dict(os.environ, TARGET_PIPES="%d,%d" % (ready_write, go_read),
                     PYTHONDONTWRITEBYTECODE="1", PYTHONWARNINGS="ignore", **(env or {})),
            stdin=subprocess.DEVNULL,
            preexec_fn=allow_any_tracer,
        )
        os.close(go_read)
        os.close(ready_write)
        self.ready = os.fdopen(ready, "rb")
        self.pid = self.process.pid
        self.stands = False

    def __enter__(self):
        try:
            self.facts = self.hear()
        except BaseException:
            self.kill()
            raise
        return self

    def hear(self):
        """The target's next line."""
        line = b""
        deadline = time.monotonic() + PATIENCE_S
        while not line.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left < 0 or not select.select([self.ready], [], [], left)[0]:
                raise AssertionError("the target said nothing for %d s" % PATIENCE_S)
            more = os.read(self.ready.fileno(), 1 << 20)
            if not more:
                raise AssertionError("the target ended early: %r" % self.process.wait())
            line += more
        first, *rest = line.splitlines()
        assert not rest, rest
        return json.loads(first)

    def descend(self):
        """The innermost process below a launcher that stays (unshare --fork, a shell)."""
        while children_of(self.pid):
            (self.pid,) = children_of(self.pid)
        return self.pid

    def tids(self):
        """Our number of each thread, by the number that the target itself knows."""
        numbers = {}
        for text in thread_texts(self.pid, "status").values():
            found = re.search(r"^NSpid:(.*)$", text, re.M)
            if found:
                words = found.group(1).split()
                numbers[int(words[-1])] = int(words[0])
        return numbers

    def wait_in(self, tid, *syscalls):
        """Until that thread is blocked in one of these system calls."""
        wanted = [str(SYSCALLS[name]) for name in syscalls if name in SYSCALLS]
        until(lambda: self.syscall(tid)[0] in wanted, "thread %d in %s" % (tid, "/".join(syscalls)))

    def wait_in_lock(self, tid):
        """Until that thread is blocked in a futex without a timeout: the GIL is waited for with
        one."""
        futex = str(SYSCALLS["futex"])
        until(
            lambda: self.syscall(tid)[0] == futex and int(self.syscall(tid)[4], 16) == 0,
            "thread %d in a lock" % tid,
        )

    def await_stand(self):
        """Until every thread that declared its stack stands still: it does so before it gets
        there."""
        if self.stands or "parked" not in self.facts:
            return
        own = {self.facts["parked"], *(truth["tid"] for truth in self.facts["threads"])}
        known = self.tids()
        until(lambda: all(self.stands_still(known[tid]) for tid in own), "threads that stand still")
        self.stands = True

    def stands_still(self, tid):
        """In wait_for_go(), or in a lock as wait_in_lock() knows it."""
        number, *arguments = self.syscall(tid)
        return number == str(SYSCALLS["read"]) or (
            number == str(SYSCALLS["futex"]) and int(arguments[3], 16) == 0)

    def syscall(self, tid):
        """The call that a blocked thread stands in and its arguments; ["running"] otherwise."""
        with open("/proc/%d/task/%d/syscall" % (self.pid, tid)) as file:
            return (file.read().split() + [""] * 5 + ["0"])[:6]

    def settle(self):
        """Until all threads were blocked at one moment, with no one left to wake another up."""

        def turns():
            blocked = set(thread_states(self.pid)) == {"S"}
            return blocked and [text.split()[2] for text in
                                thread_texts(self.pid, "schedstat").values()]

        def quiet():
            first = turns()
            return first and turns() == first

        until(quiet, "a target that stands still")

    def is_stopped(self):
        return set(thread_states(self.pid)) == {"T"}

    def stop(self):
        self.await_stand()
        os.kill(self.pid, signal.SIGSTOP)
        until(self.is_stopped, "a stopped target")

    def go_on(self):
        os.kill(self.pid, signal.SIGCONT)

    def finish(self):
        """Lets it run to its end: it must come to its right result, as if nobody had looked."""
        os.close(self.go)
        self.go = -1
        result = self.hear()
        status = self.process.wait(PATIENCE_S)
        assert result == {"result": 42} and status == 0, (result, status)

    def __exit__(self, kind, value, traceback):
        try:
            if kind is None and self.go >= 0:
                self.finish()
        finally:
            self.kill()

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.ready.close()
        if self.go >= 0:
            os.close(self.go)
            self.go = -1


def allow_any_tracer():
    """Where Yama asks for it and we are not privileged: our program is no ancestor of the
    target."""
    pr_set_ptracer, any_tracer = 0x59616D61, ctypes.c_ulong(-1)
    if os.geteuid() != 0:
        LIBC.prctl(pr_set_ptracer, any_tracer, 0, 0, 0)


LIBC = ctypes.CDLL(None, use_errno=True)


def until(condition, what):
    """Waits for something that another process does by itself and that no file descriptor
    announces."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("waited in vain for: " + what)
        os.sched_yield()


def state_in(stat):
    """The kernel's letter: "T" stands for stopped, "t" for paused by a tracer."""
    return stat.rpartition(")")[2].split()[0]


def state_of(pid):
    return state_in(read_text("/proc/%d/stat" % pid))


def thread_states(pid):
    return [state_in(text) for text in thread_texts(pid, "stat").values()]


# --- the program under test -----------------------------------------------------------------------


def start_attach(*arguments, prefix=(), program=None, env=None, **options):
    """Begins `scalene-attach ARGUMENTS`; what the user's own environment says of colours is left
    out."""
    colours = ("NO_COLOR", "CLICOLOR_FORCE")
    environment = {name: text for name, text in os.environ.items() if name not in colours}
    options.setdefault("stdout", subprocess.PIPE)
    return subprocess.Popen(
        [*prefix, program or SCALENE_ATTACH, *map(str, arguments)],
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env=dict(environment, **(env or {})),
        **options,
    )


def run_attach(*arguments, **options):
    """Runs it to its end; its streams are bytes."""
    with start_attach(*arguments, **options) as process:
        try:
            output, error = process.communicate(timeout=PATIENCE_S)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(arguments, process.returncode, output, error)


def is_watched(profiler, pid):
    """The profiler holds on to the process, and to the news of its end."""
    folder, held = "/proc/%d/fd" % profiler, set()
    for name in os.listdir(folder):
        try:
            held.add(os.readlink(os.path.join(folder, name)))
        except OSError:
            pass
    return {"/proc/%d" % pid, "anon_inode:[pidfd]"} <= held


class AttachTest(unittest.TestCase):
    maxDiff = 4000
    longMessage = True

    def refuse(self, answer, status, *words):
        """One sentence on standard error that holds these words (regular expressions), nothing
        else."""
        text = answer.stderr.decode()
        self.assertEqual(answer.returncode, status, text)
        self.assertEqual(answer.stdout or b"", b"")
        self.assertRegex(text, r"\Ascalene-attach: [^\n]+\n\Z", "one line on standard error")
        for word in words:
            self.assertRegex(text.lower(), str(word).lower())

    def dump(self, target, *options, **run_options):
        """The answer of `dump --json`, its keys and types checked against the contract."""
        target.await_stand()
        answer = run_attach("dump", "--pid", target.pid, "--json", *options, **run_options)
        self.assertEqual(answer.returncode, 0, answer.stderr.decode())
        self.assertEqual(answer.stderr, b"")
        dump = json.loads(answer.stdout.decode())
        self.check_shape(dump, target)
        return dump

    def check_shape(self, dump, target):
        self.assertEqual(set(dump), {"pid", "python", "threads"})
        self.assertEqual(dump["pid"], target.pid)
        wanted = re.escape(target.interpreter.release.rstrip("t"))
        wanted += r"\.\d+\S*t" if target.interpreter.free_threaded else r"\.\d+[^t]*"
        self.assertRegex(dump["python"], r"\A%s\Z" % wanted)
        for thread in dump["threads"]:
            self.assertEqual(set(thread) - {"error", "awaiting"}, THREAD_KEYS)
            for key in ("tid", "ident", "interpreter"):
                self.assertIs(type(thread[key]), int, key)
            self.assertIn(type(thread["name"]), (str, type(None)))
            self.assertIs(type(thread["holds_gil"]), bool)
            self.assertIn(thread["state"], STATES)
            for frame in thread["frames"]:
                self.check_frame(frame)

    def check_frame(self, frame):
        allowed = {
            "py": FRAME_KEYS | {"column"},
            "native": FRAME_KEYS | {"module", "ip", "offset"},
            "gc": FRAME_KEYS,
        }[frame["kind"]]
        self.assertLessEqual(set(frame), allowed, frame)
        self.assertLessEqual(FRAME_KEYS, set(frame), frame)
        if frame["kind"] == "py":
            self.assertIs(type(frame["name"]), str)
            self.assertIs(type(frame["file"]), str)
            self.assertIn(type(frame["line"]), (int, type(None)))
            self.assertIs(type(frame.get("column", 1)), int)

    def thread_of(self, dump, tid, interpreter=None):
        found = [
            thread
            for thread in dump["threads"]
            if thread["tid"] == tid and interpreter in (None, thread["interpreter"])
        ]
        self.assertEqual(len(found), 1, "thread %d in %r" % (tid, dump))
        return found[0]

    def program_frames(self, thread):
        """[name, file, line, column] of the Python frames outside of target.park() or
        target.stay(), in which there is what belongs there."""
        frames = [frame for frame in thread["frames"] if frame["kind"] == "py"]
        waiting = [number for number, frame in enumerate(frames) if is_waiting(frame)]
        self.assertTrue(waiting, frames[:5])
        inside = [(frame["name"].split(".")[-1], os.path.basename(frame["file"]))
                  for frame in frames[: waiting[0]]]
        self.assertEqual(inside, STANDS_IN[frames[waiting[0]]["name"]])
        return [
            [frame["name"], frame["file"], frame["line"], frame.get("column", 0)]
            for frame in frames[waiting[0] + 1 :]
        ]

    def check_truth(self, target, dump):
        """Each thread that declared itself: its id, its name, and all of its frames."""
        tids = target.tids()
        self.assertTrue(target.facts["threads"])
        for truth in target.facts["threads"]:
            thread = self.thread_of(
                dump, tids[truth["tid"]], truth.get("interpreter")
            )
            self.assertNotIn("error", thread)
            self.assertEqual(self.program_frames(thread), truth["frames"])
            self.assertEqual(thread["ident"], truth["ident"])
            self.assertEqual(thread["name"], truth["name"])


def is_waiting(frame):
    return os.path.basename(frame["file"]) == "target.py" and frame["name"] in STANDS_IN


# --- running --------------------------------------------------------------------------------------

CURRENT = None


class Result(unittest.TextTestResult):
    """Counts what has run to a good end: a file where nothing has is skipped."""

    succeeded = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.succeeded += 1


def say_skipped(result, origin):
    """For cmake/setup, which at its end lists each line of a test that begins so."""
    for case, reason in result.skipped:
        name = case.id().replace("__main__.", "")
        print("skipped: %s: %s [%s]" % (name, " ".join(reason.split()), origin), flush=True)


def main():
    """Runs the caller's tests over every interpreter of the wanted release."""
    global CURRENT
    enter_own_mounts()
    chosen = [item for item in interpreters() if item.release == RELEASE]
    if "SCALENE_ONE_BUILD" in os.environ:
        del chosen[1:]
    if not chosen:
        print("skipped: no CPython %s on this machine" % RELEASE)
        sys.exit(ALL_SKIPPED)
    good, succeeded = True, 0
    runner = unittest.TextTestRunner(verbosity=2, resultclass=Result)
    for CURRENT in chosen:
        print("=== %s" % CURRENT, flush=True)
        if CURRENT.root:
            mount_into(CURRENT.root)
        result = unittest.main("__main__", exit=False, testRunner=runner).result
        say_skipped(result, CURRENT.origin)
        good = good and result.wasSuccessful()
        succeeded += result.succeeded
    sys.exit((0 if succeeded else ALL_SKIPPED) if good else 1)
