"""Launching: a program runs as a shell would have run it, whatever its words are, and what it was
shows in the profile. Attaching to several, for a while: they run on."""

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
import zipfile

import harness
from harness import PROGRAMS, Target
from launching import BURN, LaunchTest
from profiler import attached, function_of

JOB_CONTROL = os.path.join(PROGRAMS, "job_control.py")

CHILDREN = """
import multiprocessing, sys

def keep(count):
    kept = []
    for _ in range(count):
        kept.append(bytearray(100000))
    return len(kept)

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    with multiprocessing.Pool(2) as pool:
        pool.map(keep, [200] * 4)
"""


class Marked(LaunchTest):
    """`@profile` is there without an import, and keeps the report to what it marks."""

    def check(self, *options, words=()):
        program = harness.CURRENT.inner(os.path.join(PROGRAMS, "marked.py"))
        answer = self.run_words(*self.options(*options, "--"), *self.python(*words, program),
                                cwd=PROGRAMS)
        self.assertEqual((answer.returncode, answer.stderr), (0, b""))
        (entry,) = [entry for name, entry in self.profile()["files"].items()
                    if name.endswith("marked.py")]
        self.assertEqual({each["line"] for each in entry["functions"]}, {"marked"})

    def test_with_memory(self):
        self.check("--memory")

    def test_without_memory(self):
        self.check("--cpu-only")
        self.assertFalse(self.profile()["memory"])

    def test_in_a_module(self):
        """What is started marks nothing, but the folder holds what does."""
        self.check("--cpu-only", words=["-c", self.code()])

    @staticmethod
    def code():
        return "import runpy, sys; sys.argv[0] = sys.argv[1]; runpy.run_path(sys.argv[1])"

    def test_unmarked(self):
        """Nothing is loaded into a program that asks for nothing, as far as anybody can tell: what
        another root folder holds, nobody looks at."""
        loop = "end = __import__('time').time() + 0.1\nwhile __import__('time').time() < end: pass"
        options = self.options("--cpu-only", "--no-subprocesses", "--")
        answer = self.run_words(*options, *self.python("-c", loop),
                                env={"LD_DEBUG": "files"}, cwd=self.folder)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        loaded = b"libscalene_shim" in answer.stderr
        self.assertEqual(loaded, bool(harness.CURRENT.root))


class Ends(LaunchTest):
    def check_end(self, status, *words, stdin=b"", stdout=b"", stderr=rb"\A\Z"):
        answer = self.run_words(*self.options("--"), *self.launched("0.15", *words), stdin=stdin)
        self.assertEqual((answer.returncode, answer.stdout), (status, stdout), answer.stderr)
        self.assertRegex(answer.stderr, stderr)
        self.assertEqual(self.python_of(self.profile(), "launched")["exit_status"], status)

    def test_exit_status(self):
        self.check_end(0)
        self.check_end(77, "exit", "77")

    def test_killed(self):
        self.check_end(128 + signal.SIGKILL, "signal", "9")
        self.check_end(128 + signal.SIGTERM, "signal", "15")

    def test_exception(self):
        self.check_end(1, "raise", stderr=rb"RuntimeError: as it pleases\n\Z")

    def test_names_of_threads(self):
        """The interpreter forgets them before it ends."""
        script = ("import threading, time\n"
                  "threading.Thread(target=time.sleep, args=(100,), name='Z', daemon=True).start()")
        for _ in range(3):
            answer = self.run_words(*self.options("--cpu-only", "--"),
                                    *self.python("-c", script + BURN))
            self.assertEqual((answer.returncode, answer.stderr), (0, b""))
            self.assertEqual([each["name"] for each in self.profile()["threads"]],
                             ["MainThread", "Z"])

    def test_streams_are_its_own(self):
        self.check_end(0, "echo", stdin=b"words\n", stdout=b"WORDS\n")

    def test_program_outlives_the_duration(self):
        program = self.launched("1.5", "exit", "9")
        answer = self.run_words(*self.options("-d", "0.6", "--"), *program)
        self.assertEqual(answer.returncode, 9, answer.stderr)
        self.assertLess(self.profile()["totals"]["elapsed_s"], 1.5)

    def test_shell_in_between(self):
        answer = self.run_words(*self.options("--"), "sh", "-c", '"$@" & wait; exit 4', "sh",
                                *self.launched("0.15"))
        self.assertEqual(answer.returncode, 4, answer.stderr)
        self.assertEqual(self.python_of(self.profile(), "launched")["exit_status"], 0)

    def test_child(self):
        """Its time is in the profile, or the child was not wanted."""
        for option, count in (("--subprocesses", 2), ("--no-subprocesses", 1)):
            answer = self.run_words(*self.options(option, "--"),
                                    *self.launched("0.3", "child", "0.3"))
            self.assertEqual((answer.returncode, answer.stderr), (0, b""))
            profile = self.profile()
            self.assertEqual(len([each for each in profile["processes"] if each["python"]]), count)
            self.assertEqual(function_of(profile, "burn")["n_processes"], count)
            self.assertLess(self.cpu_of(profile, "launched.py", "burn"), 0.3 * count + 0.06)

    def test_ranks(self):
        """As MPI's launchers and Slurm's tell them, the innermost first."""
        ranks = "SLURM_PROCID=7 %s & SLURM_PROCID=7 PMI_RANK=3 %s & %s & wait" % tuple(
            " ".join(self.launched("0.15", "exit", number)) for number in "012")
        answer = self.run_words(*self.options("--"), "sh", "-c", ranks)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        found = {each["argv"][-1]: each["rank"] for each in self.profile()["processes"]
                 if each["python"]}
        self.assertEqual(found, {"0": 7, "1": 3, "2": None})


class Signals(LaunchTest):
    def start(self, *words, **options):
        return subprocess.Popen(self.options("--") + self.launched("0.15", *words),
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **options)

    def test_passed_on_once(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            with self.start("count", str(int(number))) as process:
                self.assertEqual(process.stdout.readline(), b"listening\n")
                process.send_signal(number)
                heard = b"0\n"
                while heard == b"0\n":
                    process.stdin.write(b"how many?\n")
                    process.stdin.flush()
                    heard = process.stdout.readline()
                process.stdin.write(b"end\n")
                process.stdin.close()
                self.assertEqual(process.stdout.read(), b"1\n")
            self.assertEqual(process.returncode, 11)
            self.profile()

    def test_ends_by_it(self):
        with self.start("wait") as process:
            self.assertEqual(process.stdout.readline(), b"waiting\n")
            process.terminate()
            process.communicate(timeout=harness.PATIENCE_S)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.profile()


class Terminal(LaunchTest):
    """As a job on a terminal of its own, below a shell."""

    def start(self, *words):
        hear, say = os.pipe()
        child, self.terminal = pty.fork()
        if not child:
            os.set_inheritable(say, True)
            os.execv(sys.executable, [sys.executable, "-B", JOB_CONTROL, str(say),
                                      *self.options("--"), *self.launched("0.15", *words)])
        os.close(say)
        self.pipe = os.fdopen(hear, "rb")
        self.addCleanup(self.pipe.close)
        self.addCleanup(os.close, self.terminal)
        self.addCleanup(os.waitpid, child, 0)
        self.seen = b""

    def show(self, wanted):
        """Until the terminal shows it."""
        deadline = time.monotonic() + harness.PATIENCE_S
        while wanted not in self.seen:
            ready = select.select([self.terminal], [], [], max(0, deadline - time.monotonic()))[0]
            self.assertTrue(ready, "%r instead of %r" % (self.seen, wanted))
            self.seen += os.read(self.terminal, 65536)

    def hear(self):
        return json.loads(self.pipe.readline().decode())

    def test_reads_what_is_typed(self):
        self.start("echo")
        os.write(self.terminal, b"typed\n")
        self.show(b"TYPED")
        self.assertEqual(self.hear(), {"status": 0})
        self.profile()

    def test_ctrl_c_once(self):
        self.start("count", str(int(signal.SIGINT)))
        self.show(b"listening")
        os.write(self.terminal, b"\x03")
        self.show(b"^C")
        os.write(self.terminal, b"end\n")
        self.assertEqual(self.hear(), {"status": 11})
        self.profile()

    def test_ctrl_c_ends(self):
        self.start("wait")
        self.show(b"waiting")
        os.write(self.terminal, b"\x03")
        self.assertEqual(self.hear(), {"status": 128 + signal.SIGINT})
        self.profile()

    def test_ctrl_z_and_back(self):
        self.start("count", str(int(signal.SIGINT)))
        self.show(b"listening")
        os.write(self.terminal, b"\x1a")
        self.assertEqual(self.hear(), {"stopped": signal.SIGTSTP})
        os.write(self.terminal, b"end\n")
        self.assertEqual(self.hear(), {"status": 10})
        self.profile()


class Forms(LaunchTest):
    def check_form(self, *words, run=(), ending="launched.py", function="burn", word="launched",
                   **options):
        answer = self.run_words(*self.options(*run), *words, **options)
        self.assertEqual((answer.returncode, answer.stdout, answer.stderr), (3, b"", b""))
        self.check_burnt(0.15, ending, function, word)

    MORE = ["0.15", "exit", "3"]

    def check_program(self, path, first, folder=None, more=None):
        """As the program sees itself: its first word, and where it lies, both from inside."""
        profile = self.profile()
        self.assertEqual(profile["program"], path)
        self.assertEqual(profile["args"], [first, *(self.MORE if more is None else more)])
        self.assertEqual(profile["entrypoint_dir"], os.path.dirname(path) if folder is None
                         else folder)

    def inside(self, name):
        return os.path.join(self.programs(), name)

    def programs(self):
        return harness.CURRENT.inner(PROGRAMS)

    def test_file(self):
        self.check_form("--", *self.launched("0.15", "exit", "3"))
        self.check_program(self.inside("launched.py"), self.inside("launched.py"))

    def test_module(self):
        """Below the working folder, which chroot leaves."""
        everything = ["--profile-all"] if harness.CURRENT.root else []
        self.check_form("--", *self.python("-m", "launched", "0.15", "exit", "3"), run=everything,
                        env={"PYTHONPATH": self.programs()}, cwd=PROGRAMS)
        self.check_program(self.inside("launched.py"), self.inside("launched.py"), "")

    def code(self):
        return "import sys; sys.path.insert(0, %r); import launched; launched.main()" % (
            self.programs())

    def test_code(self):
        self.check_form("--", *self.python("-c", self.code(), "0.15", "exit", "3"),
                        run=["--profile-all"])
        self.check_program("", "-c")

    def test_standard_input(self):
        """Its text is nowhere any more."""
        with open(os.path.join(PROGRAMS, "launched.py"), "rb") as file:
            text = file.read()
        self.check_form("--", *self.python("-", "0.15", "exit", "3"), stdin=text, ending="<stdin>",
                        word="-")
        self.check_program("", "-")

    def test_zipped(self):
        archive = os.path.join(self.folder, "app.pyz")
        with zipfile.ZipFile(archive, "w") as packed:
            packed.write(os.path.join(PROGRAMS, "launched.py"), "launched.py")
            packed.writestr("__main__.py", "import launched\nlaunched.main()\n")
        self.check_form("--", *self.python(harness.CURRENT.inner(archive), "0.15", "exit", "3"),
                        ending="app.pyz/launched.py", word="app.pyz")
        self.check_program(harness.CURRENT.inner(archive), harness.CURRENT.inner(archive))
        (burnt,) = [file for name, file in self.profile()["files"].items()
                    if name.endswith("launched.py")]
        with open(os.path.join(PROGRAMS, "launched.py")) as file:
            wanted = [text for text in file.read().splitlines() if "def" in text]
        texts = [line["line"].rstrip() for line in burnt["lines"]]
        self.assertEqual([text for text in texts if "def" in text], wanted)

    def test_shebang(self):
        with open(os.path.join(PROGRAMS, "launched.py")) as file:
            text = file.read()
        for name in ("launched.py", "launched"):
            script = os.path.join(self.folder, name)
            with open(script, "w") as file:
                file.write("#!%s\n%s" % (harness.CURRENT.python, text))
            os.chmod(script, 0o755)
            inner = harness.CURRENT.inner(script)
            self.check_form("--", *self.python()[:-1], inner, "0.15", "exit", "3", ending=name)
            self.check_program(inner, inner)

    def test_virtual_environment(self):
        venv = os.path.join(self.folder, "venv")
        inner = harness.CURRENT.inner(venv)
        subprocess.run(self.python("-m", "venv", "--without-pip", "--symlinks", inner), check=True)
        python = self.python()[:-1] + [inner + "/bin/python"]
        script = self.launched("0.15", "exit", "3")[-4:]
        self.check_form("--", *python, *script)
        self.assertIn("venv", self.python_of(self.profile(), "launched")["argv"][0])

    def test_run(self):
        if harness.CURRENT.root:
            self.skipTest("--python names no interpreter in a root folder of its own")
        program, *options = self.options("--python", harness.CURRENT.python)
        verb = [program, "run", *options]
        script = os.path.join(PROGRAMS, "launched.py")
        more = ["0.15", "exit", "3"]
        for words in ([script, *more], ["---", "-m", "launched", *more],
                      ["-m", "launched", *more]):
            answer = self.run_words(*verb, *words, cwd=PROGRAMS)
            self.assertEqual((answer.returncode, answer.stderr), (3, b""), words)
            self.check_burnt(0.15)
            self.check_program(script, script, None if script in words else "")
        answer = self.run_words(*verb, "--profile-all", "---", "-c", self.code(), *more)
        self.assertEqual((answer.returncode, answer.stderr), (3, b""))
        self.check_burnt(0.15)
        self.check_program("", "-c")

    def test_folders(self):
        """Two scripts of one name, by names that are relative to where they run."""
        words = []
        for name in ("a", "b"):
            folder = os.path.join(self.folder, name)
            os.mkdir(folder)
            shutil.copy(os.path.join(PROGRAMS, "launched.py"), folder)
            words += [harness.CURRENT.inner(folder), *self.python("launched.py", "0.15")]
        if harness.CURRENT.root:
            self.skipTest("whoever enters a root folder does so at its top")
        answer = self.run_words(*self.options("--"), "sh", "-c",
                                'cd "$1"; "$2" "$3" "$4"; cd "$5"; "$6" "$7" "$8"', "sh", *words)
        self.assertEqual((answer.returncode, answer.stderr), (0, b""))
        profile = self.profile()
        self.assertEqual((profile["program"], profile["args"][:2]), ("", ["sh", "-c"]))
        for name in ("a", "b"):
            path = os.path.join(self.folder, name, "launched.py")
            self.assertGreater(self.cpu_of(self.profile(), path, "burn"), 0.05)

    def test_children_with_memory(self):
        """They allocate before anybody has looked at them: all in the one file, and the helpers
        that multiprocessing starts are nobody's code."""
        with open(os.path.join(self.folder, "children.py"), "w") as file:
            file.write(CHILDREN)
        for method in ("fork", "spawn", "forkserver"):
            if harness.CURRENT.root:
                self.skipTest("whoever enters a root folder does so at its top")
            answer = self.run_words(*self.options("--memory", "--cpu-percent-threshold", "0", "--"),
                                    *self.python("children.py", method), cwd=self.folder)
            self.assertEqual((answer.returncode, answer.stderr), (0, b""))
            profile = self.profile()
            path = os.path.join(self.folder, "children.py")
            self.assertEqual({name for name in profile["files"] if name[0] != "<"}, {path})
            kept = [each for each in profile["files"][path]["functions"] if each["line"] == "keep"]
            self.assertGreater(kept[0]["allocated_mb"], 20)
            code = profile["files"].get("<string>", {"percent_cpu_time": 0})
            self.assertLess(code["percent_cpu_time"], 5)


class Several(LaunchTest):
    def attach(self, *options):
        answer = harness.run_attach("-q", "-o", self.output, *options)
        self.assertEqual((answer.returncode, answer.stdout, answer.stderr), (0, b"", b""))
        profile = self.profile()
        self.assertEqual(profile["mode"], "attach")
        return profile

    def test_program(self):
        """Of the first, as it was started."""
        with Target("threads.py", "spinning") as first, Target("threads.py", "spinning") as second:
            profile = self.attach("-d", "0.4", "-p", first.pid, "--pid", second.pid)
            with open("/proc/%d/cmdline" % first.pid) as file:
                words = file.read().split("\0")[:-1]
        script = next(word for word in words if word.endswith("threads.py"))
        self.assertEqual(profile["program"], script)
        self.assertEqual(profile["args"], words[words.index(script):])

    def test_two_for_a_while(self):
        with Target("threads.py", "spinning") as first, Target("threads.py", "spinning") as second:
            profile = self.attach("-d", "0.4", "-p", first.pid, "--pid", second.pid)
            by_pid = {each["pid"]: each for each in profile["processes"]}
            self.assertEqual(set(by_pid), {first.pid, second.pid})
            for each in by_pid.values():
                self.assertGreater(each["cpu_s"], 0)
                self.assertIsNone(each["exit_status"])

    def test_one_of_two_ends(self):
        with Target("threads.py", "spinning") as stays, \
                Target("threads.py", "spinning") as ends, \
                attached(self, stays, "-q", "--pid", ends.pid) as attach:
            attach.await_samples(ends.pid)
            ends.finish()
            attach.await_more_samples(stays.pid)
            self.interrupt(attach, signal.SIGINT)
            by_pid = {each["pid"]: each for each in attach.profile()["processes"]}
            self.assertEqual(set(by_pid), {stays.pid, ends.pid})

    def test_detach(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with Target("threads.py", "spinning") as target, \
                    attached(self, target, "-q") as attach:
                attach.await_samples(target.pid)
                self.interrupt(attach, number)
                self.assertFalse(target.is_stopped())

    def interrupt(self, attach, number):
        attach.process.send_signal(number)
        self.assertEqual(attach.end(), "")


if __name__ == "__main__":
    harness.main()
