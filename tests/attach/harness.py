"""Live tests: finds the interpreters, starts targets with them (in their root folder, where they have one),
runs `scalene-attach dump` on them and compares with what the interpreter says of itself from inside.

Environment: SCALENE_ATTACH (the program), SCALENE_TARGET_RELEASE ("3.8" ... "3.14t"), SCALENE_INTERPRETERS
(a JSON list of {release, python, root, origin}; found here when absent)."""

import ctypes
import glob
import json
import os
import platform
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from contextlib import contextmanager

MISSING_RELEASE = 77  # the exit status that ctest counts as skipped
PATIENCE_S = 60  # a step that takes longer has failed, on any machine
PROGRAMS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "programs")
SCALENE_ATTACH = os.environ.get("SCALENE_ATTACH", "scalene-attach")
RELEASE = os.environ.get("SCALENE_TARGET_RELEASE", "%d.%d" % sys.version_info[:2])
INNER_PROGRAMS = "/mnt"  # where PROGRAMS appears in an interpreter's root folder
OWN_FAILURE = 125
USAGE = 2

THREAD_KEYS = {"tid", "ident", "name", "interpreter", "state", "holds_gil", "frames"}
FRAME_KEYS = {"kind", "name", "file", "line"}
STATES = {"running", "stopped", "gil", "cpu", "lock", "io", "sleep", "child", "gpu", "other"}

# What a blocked thread stands in, by the kernel's numbers: a target's thread is ready when it is there.
SYSCALLS = {
    "x86_64": {"read": 0, "poll": 7, "select": 23, "nanosleep": 35, "recvfrom": 45, "wait4": 61,
               "futex": 202, "clock_nanosleep": 230, "epoll_wait": 232, "waitid": 247,
               "pselect6": 270, "ppoll": 271, "epoll_pwait": 281, "accept4": 288, "accept": 43},
    "aarch64": {"epoll_pwait": 22, "read": 63, "pselect6": 72, "ppoll": 73, "waitid": 95,
                "futex": 98, "nanosleep": 101, "clock_nanosleep": 115, "accept": 202,
                "recvfrom": 207, "accept4": 242, "wait4": 260},
}[platform.machine()]


# --- interpreters ---------------------------------------------------------------------------------


class Interpreter:
    def __init__(self, release, python, root=None, origin=""):
        self.release, self.python, self.root, self.origin = release, python, root, origin
        digits = re.match(r"(\d+)\.(\d+)(t?)", release)
        self.version = (int(digits.group(1)), int(digits.group(2)))
        self.free_threaded = bool(digits.group(3))

    def __str__(self):
        return "%s (%s%s)" % (self.release, self.root or "", self.python)

    def command(self, *arguments):
        chroot = ["chroot", self.root] if self.root else []
        return chroot + [self.python, *arguments]

    def inner(self, path):
        """How a path in PROGRAMS or in the temporary folder is called inside the root folder."""
        if not self.root:
            return path
        if path.startswith(PROGRAMS):
            return INNER_PROGRAMS + path[len(PROGRAMS):]
        return "/tmp" + path[len(tempfile.gettempdir()):]

    def outer(self, path):
        return (self.root or "") + path

    def inner_of(self, path):
        """The other way round than outer()."""
        return path[len(self.root or ""):]

    def ask(self, expression):
        """The value of an expression in this interpreter (sys, sysconfig and os are imported)."""
        code = "import json, os, sys, sysconfig; print(json.dumps(%s))" % expression
        output = subprocess.run(self.command("-c", code), stdout=subprocess.PIPE, check=True)
        return json.loads(output.stdout)

    def config(self, name):
        return self.ask("sysconfig.get_config_var(%r)" % name)

    @property
    def executable(self):
        """The outer path of the real file."""
        return self.outer(self.ask("os.path.realpath(sys.executable)"))

    @property
    def shared_library(self):
        """The outer path of the libpython that the executable needs, or None in a static build."""
        code = "[line.split()[-1] for line in open('/proc/self/maps') if 'libpython' in line]"
        mapped = self.ask(code)
        return self.outer(mapped[0]) if mapped else None


def probe_interpreter(python, root=None, origin=""):
    code = (
        "import sys, sysconfig; free = sysconfig.get_config_var('Py_GIL_DISABLED');"
        "print('%d.%d%s' % (sys.version_info[0], sys.version_info[1], 't' if free else ''))"
    )
    interpreter = Interpreter("0.0", python, root, origin)
    try:
        answer = subprocess.run(
            interpreter.command("-c", code),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE_S,
        )
    except OSError:
        return None
    release = answer.stdout.decode().strip()
    return Interpreter(release, python, root, origin) if release else None


def discover_interpreters():
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    cache = os.path.join(
        os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "scalene-attach"
    )
    places = [(path, None, "pyenv") for path in sorted(glob.glob(pyenv + "/versions/*/bin/python"))]
    for folder in os.environ["PATH"].split(":"):
        if not folder.startswith(pyenv):
            found = glob.glob(folder + "/python3*") + glob.glob(folder + "/python2*")
            named = [path for path in found if re.search(r"/python\d(\.\d+)?t?$", path)]
            places += [(path, None, "path") for path in sorted(named)]
    sid = os.path.join(cache, "sid")
    inside = [path[len(sid):] for path in glob.glob(sid + "/usr/bin/python3.*")]
    if os.geteuid() == 0:
        places += [(path, sid, "sid") for path in inside if re.search(r"\d$", path)]
    for path in glob.glob(cache + "/python-*t/bin/python3"):
        places.append((path, None, "cache"))

    found, seen = [], set()
    for path, root, origin in places:
        real = os.path.realpath((root or "") + path)
        if real not in seen:
            seen.add(real)
            found.append(probe_interpreter(path, root, origin))
    return [interpreter for interpreter in found if interpreter]


def interpreters():
    """All of this machine, each release's possibly more than once."""
    listed = os.environ.get("SCALENE_INTERPRETERS")
    if listed is None:
        return discover_interpreters()
    with open(listed, encoding="utf-8") as file:
        rows = json.load(file)
    return [
        Interpreter(row["release"], row["python"], row.get("root"), row.get("origin", ""))
        for row in rows
    ]


def enter_own_mounts():
    """Mounts made for the root folders are seen by this process and its children alone."""
    clone_newns = 0x20000
    if os.geteuid() == 0 and ctypes.CDLL(None, use_errno=True).unshare(clone_newns) == 0:
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)


def mount_into(root):
    """proc, devices, the programs and the temporary folder, inside a root folder."""
    if os.path.ismount(root + INNER_PROGRAMS):
        return
    subprocess.run(["mount", "-t", "proc", "proc", root + "/proc"], check=True)
    for source, inner in (
        ("/dev", "/dev"),
        (PROGRAMS, INNER_PROGRAMS),
        (tempfile.gettempdir(), "/tmp"),
    ):
        subprocess.run(["mount", "--rbind", source, root + inner], check=True)


# --- ELF files ------------------------------------------------------------------------------------


def has_symbols(path):
    """Has it a .symtab, with the functions that are not exported too?"""
    with open(path, "rb") as file:
        image = file.read()
    (offset,) = struct.unpack_from("<Q", image, 0x28)
    size, count = struct.unpack_from("<HH", image, 0x3A)
    sht_symtab = 2
    kinds = [struct.unpack_from("<I", image, offset + n * size + 4)[0] for n in range(count)]
    return sht_symtab in kinds


def drop_section_headers(path):
    """As some packers leave a file: e_shoff, e_shnum and e_shstrndx are 0."""
    with open(path, "r+b") as file:
        file.seek(0x28)
        file.write(bytes(8))
        file.seek(0x3C)
        file.write(bytes(4))


# --- targets --------------------------------------------------------------------------------------


def read_text(path):
    with open(path) as file:
        return file.read()


def children_of(pid):
    found = []
    for task in glob.glob("/proc/%d/task/*/children" % pid):
        with open(task) as file:
            found += [int(word) for word in file.read().split()]
    return found


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
        self.unharmed = False

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
        for status in glob.glob("/proc/%d/task/*/status" % self.pid):
            with open(status) as file:
                words = re.search(r"^NSpid:(.*)$", file.read(), re.M).group(1).split()
            numbers[int(words[-1])] = int(words[0])
        return numbers

    def wait_in(self, tid, *syscalls):
        """Until that thread is blocked in one of these system calls."""
        wanted = [str(SYSCALLS[name]) for name in syscalls if name in SYSCALLS]
        until(lambda: self.syscall(tid)[0] in wanted, "thread %d in %s" % (tid, "/".join(syscalls)))

    def wait_in_lock(self, tid):
        """Until that thread is blocked in a futex without a timeout: the GIL is waited for with one."""
        futex = str(SYSCALLS["futex"])
        until(
            lambda: self.syscall(tid)[0] == futex and int(self.syscall(tid)[4], 16) == 0,
            "thread %d in a lock" % tid,
        )

    def syscall(self, tid):
        """The call that a blocked thread stands in and its arguments; ["running"] otherwise."""
        with open("/proc/%d/task/%d/syscall" % (self.pid, tid)) as file:
            return (file.read().split() + [""] * 5 + ["0"])[:6]

    def settle(self):
        """Until all threads were blocked at one moment, with no one left to wake another up."""

        def turns():
            blocked = set(self.states()) == {"S"}
            return blocked and [read_text(path).split()[2] for path in
                                sorted(glob.glob("/proc/%d/task/*/schedstat" % self.pid))]

        def quiet():
            first = turns()
            return first and turns() == first

        until(quiet, "a target that stands still")

    def states(self):
        """The kernel's letter for each thread."""
        letters = []
        for stat in glob.glob("/proc/%d/task/*/stat" % self.pid):
            with open(stat) as file:
                letters.append(file.read().rpartition(")")[2].split()[0])
        return letters

    def is_stopped(self):
        return set(self.states()) == {"T"}

    def stop(self):
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
    """Where Yama asks for it and we are not privileged: our program is no ancestor of the target."""
    pr_set_ptracer, any_tracer = 0x59616D61, ctypes.c_ulong(-1)
    if os.geteuid() != 0:
        LIBC.prctl(pr_set_ptracer, any_tracer, 0, 0, 0)


LIBC = ctypes.CDLL(None, use_errno=True)


def until(condition, what):
    """Waits for something that another process does by itself and that no file descriptor announces."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("waited in vain for: " + what)
        os.sched_yield()


# --- the program under test -----------------------------------------------------------------------


def start_attach(*arguments, prefix=(), program=None, env=None, **options):
    """Begins `scalene-attach ARGUMENTS`; what the user's own environment says of colours is left out."""
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


class AttachTest(unittest.TestCase):
    maxDiff = 4000
    longMessage = True

    def refuse(self, answer, status, *words):
        """One sentence on standard error that holds these words (regular expressions), nothing else."""
        text = answer.stderr.decode()
        self.assertEqual(answer.returncode, status, text)
        self.assertEqual(answer.stdout or b"", b"")
        self.assertRegex(text, r"\Ascalene-attach: [^\n]+\n\Z", "one line on standard error")
        for word in words:
            self.assertRegex(text.lower(), str(word).lower())

    def dump(self, target, *options, **run_options):
        """The answer of `dump --json`, its keys and types checked against the contract."""
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
        """[name, file, line, column] of the Python frames outside of target.park() or target.stay()."""
        frames = [frame for frame in thread["frames"] if frame["kind"] == "py"]
        waiting = [number for number, frame in enumerate(frames) if is_waiting(frame)]
        self.assertTrue(waiting, frames[:5])
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
    return os.path.basename(frame["file"]) == "target.py" and frame["name"] in ("park", "stay")


# --- running --------------------------------------------------------------------------------------

CURRENT = None


def main():
    """Runs the caller's tests over every interpreter of the wanted release."""
    global CURRENT
    enter_own_mounts()
    chosen = [item for item in interpreters() if item.release == RELEASE]
    if not chosen:
        print("skipped: no CPython %s on this machine" % RELEASE)
        sys.exit(MISSING_RELEASE)
    good = True
    for CURRENT in chosen:
        print("=== %s" % CURRENT, flush=True)
        if CURRENT.root:
            mount_into(CURRENT.root)
        program = unittest.main("__main__", exit=False, verbosity=2)
        good = good and program.result.wasSuccessful()
    sys.exit(0 if good else 1)
