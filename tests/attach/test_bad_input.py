"""Section 6 of the contract: whatever is wrong, one sentence that says what was tried and what
would help, the right status, and a target that is as it was."""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import harness
from harness import OWN_FAILURE, USAGE, Target, run_attach

NOBODY = 65534
YAMA = "/proc/sys/kernel/yama/ptrace_scope"

needs_root = unittest.skipUnless(os.geteuid() == 0, "needs root to become another user")


def as_nobody(*more):
    return ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups",
            "--inh-caps=-all", "--bounding-set=-all", *more]


class Usage(harness.AttachTest):
    def check_usage(self, words, *expected):
        self.refuse(run_attach(*words), USAGE, *expected)

    def test_no_command(self):
        answer = run_attach()
        self.assertEqual(answer.returncode, USAGE)
        self.assertEqual(answer.stdout, b"")
        self.assertIn(b"usage", answer.stderr.lower())

    def test_help(self):
        for words in (["-h"], ["--help"], ["--help-advanced"], ["dump", "--help"]):
            answer = run_attach(*words)
            self.assertEqual(answer.returncode, 0, words)
            self.assertIn(b"--pid", answer.stdout)
            self.assertNotIn(b"\x1b", answer.stdout)

    def test_unknown_command(self):
        self.check_usage(["dumb", "--pid", "1"], "dumb", "dump")

    def test_unknown_option_names_the_nearest(self):
        for wrong, near in (
            ("--pdi", "--pid"), ("--jsn", "--json"), ("--nativ", "--native"),
            ("--non-blocking", "--nonblocking"), ("--JSON", "--json"),
        ):
            self.check_usage(["dump", "--pid", "1", wrong], wrong, near)

    def test_unknown_option_with_a_value(self):
        self.check_usage(["dump", "--pidd=1"], "--pidd", "--pid")

    def test_unknown_short_option(self):
        self.check_usage(["dump", "-x", "--pid", "1"], "-x")

    def test_no_pid(self):
        self.check_usage(["dump"], "--pid")

    def test_pid_without_a_value(self):
        self.check_usage(["dump", "--pid"], "--pid")

    def test_value_for_a_switch(self):
        self.check_usage(["dump", "--pid", "1", "--json=yes"], "--json")

    def test_pid_is_no_number(self):
        for text in ("abc", "12x", "1.5", " ", "0x", "1 2"):
            self.check_usage(["dump", "--pid", text], "--pid", "number|pid")

    def test_pid_is_empty(self):
        self.check_usage(["dump", "--pid", ""], "--pid")

    def test_pid_out_of_range(self):
        for text in ("0", "-1", "-5", "2147483648", "4294967297", "99999999999999999999"):
            self.check_usage(["dump", "--pid", text], text)

    def test_a_word_too_many(self):
        self.check_usage(["dump", "--pid", "1", "more"], "more")

    def test_unknown_method(self):
        self.check_usage(["dump", "--pid", "1", "--find", "luck"], "luck", "symbol")


class NoTarget(harness.AttachTest):
    def test_no_such_process(self):
        with subprocess.Popen(["true"]) as process:
            pass
        self.refuse(run_attach("dump", "--pid", process.pid), OWN_FAILURE, process.pid,
                    "no process", "ps -e")

    def test_largest_pid(self):
        self.refuse(run_attach("dump", "--pid", 2147483647), OWN_FAILURE, "2147483647")

    def test_zombie(self):
        """A process that has ended and that nobody has waited for."""
        process = subprocess.Popen(["true"])
        harness.until(lambda: zombie(process.pid), "a zombie")
        answer = run_attach("dump", "--pid", process.pid)
        process.wait()
        self.refuse(answer, OWN_FAILURE, process.pid, "ended|zombie")

    def test_kernel_thread(self):
        with open("/proc/2/comm") as file:
            if file.read() != "kthreadd\n":
                self.skipTest("no kernel threads to be seen in this PID namespace")
        self.refuse(run_attach("dump", "--pid", 2), OWN_FAILURE, "kthreadd|kernel")

    def test_no_python(self):
        """It says what the process is."""
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as cat:
            reads = "%d " % harness.SYSCALLS["read"]
            harness.until(lambda: harness.read_text("/proc/%d/syscall" % cat.pid).startswith(reads),
                          "a program that is no longer loaded")
            answer = run_attach("dump", "--pid", cat.pid)
            cat.stdin.close()
        self.refuse(answer, OWN_FAILURE, cat.pid, r"\bcat\b", "no python", "none runs below it")
        self.assertEqual(cat.returncode, 0)

    def test_launcher_names_its_python(self):
        with Target("stacks.py", "plain", prefix=["sh", "-c", '"$@"; true', "sh"]) as target:
            shell = target.pid
            self.assertNotEqual(target.descend(), shell)
            answer = run_attach("dump", "--pid", shell)
            binary = os.path.basename(os.readlink("/proc/%d/exe" % shell))
            self.refuse(answer, OWN_FAILURE, shell, binary, r"\b%d\b" % target.pid)
            self.check_truth(target, self.dump(target))

    def test_launcher_of_a_launcher(self):
        launcher = ["sh", "-c", '"$@"; true', "sh"]
        with Target("stacks.py", "plain", prefix=launcher * 2) as target:
            shell = target.pid
            target.descend()
            answer = run_attach("dump", "--pid", shell)
            self.refuse(answer, OWN_FAILURE, r"\b%d\b" % target.pid)

    def test_launcher_of_many(self):
        script = 'for n in 1 2 3 4; do "$@" & done; wait'
        python = harness.CURRENT.command("-c", "import time; print(flush=True); time.sleep(100)")
        with subprocess.Popen(["sh", "-c", script, "sh", *python], stdout=subprocess.PIPE,
                              start_new_session=True) as shell:
            for _ in range(4):
                shell.stdout.readline()
            answer = run_attach("dump", "--pid", shell.pid)
            os.killpg(shell.pid, signal.SIGKILL)
        self.refuse(answer, OWN_FAILURE, "look there: --pid", r" and 1 more\b")

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "needs root and unshare")
    def test_no_proc(self):
        with Target("stacks.py", "plain") as target:
            without = ["unshare", "--mount", "sh", "-c", 'umount -l /proc; exec "$@"', "sh"]
            answer = run_attach("dump", "--pid", target.pid, prefix=without)
            self.refuse(answer, OWN_FAILURE, target.pid, "is there", "mount /proc")

    def test_no_descriptors(self):
        """What we lack is not taken for its end."""
        with Target("stacks.py", "plain") as target:
            few = ["sh", "-c", 'ulimit -n 4; exec "$@"', "sh"]
            answer = run_attach("dump", "--pid", target.pid, prefix=few)
            self.refuse(answer, OWN_FAILURE, target.pid, "too many open files")

    def test_itself(self):
        """Our own program is no Python either."""
        answer = run_attach(
            "-c", 'exec "$0" dump --pid $$', harness.SCALENE_ATTACH, program="sh"
        )
        self.refuse(answer, OWN_FAILURE, "scalene-attach")


def zombie(pid):
    with open("/proc/%d/stat" % pid) as file:
        return file.read().rpartition(")")[2].split()[0] == "Z"


class UnknownPython(harness.AttachTest):
    """Programs that show what such a CPython shows (tests/programs/unknown_python)."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def copy(self, program, name):
        built = os.path.join(os.environ["SCALENE_TEST_PROGRAMS"], program)
        return shutil.copy(built, os.path.join(self.folder, name))

    def check_unknown(self, path, release):
        for options in ((), ("--json",), ("--native",), ("--nonblocking",)):
            with Target("", command=[path]) as target:
                answer = run_attach("dump", "--pid", target.pid, *options)
                self.refuse(answer, OWN_FAILURE, target.pid, r"cpython %s\b" % release,
                            re.escape(path), r"3\.8", r"3\.15", "newer scalene-attach")

    def test_python_2_7(self):
        self.check_unknown(self.copy("no_runtime", "python2.7"), r"2\.7")

    def test_python_3_6(self):
        self.check_unknown(self.copy("no_runtime", "python3.6"), r"3\.6")

    def test_python_3_7(self):
        self.check_unknown(self.copy("plain_runtime", "python3.7"), r"3\.7")

    def test_below_a_launcher(self):
        launcher = ["sh", "-c", '"$@"; true', "sh", self.copy("plain_runtime", "python3.7")]
        with Target("", command=launcher) as target:
            shell = target.pid
            answer = run_attach("dump", "--pid", shell)
            self.refuse(answer, OWN_FAILURE, r"look there: --pid %d\b" % target.descend())

    def test_newer_by_its_version(self):
        """What it says itself goes before the name of its file."""
        self.check_unknown(self.copy("told_runtime", "python3.11"), r"4\.0")

    def test_newer_by_its_cookie(self):
        self.check_unknown(self.copy("cookie_runtime", "program"), r"3\.16")

    def test_newer_without_names(self):
        path = self.copy("cookie_runtime", "program")
        subprocess.run(["strip", "-s", path], check=True)
        self.check_unknown(path, r"3\.16")


@needs_root
class Denied(harness.AttachTest):
    """Which check failed: and where none fails, the same user needs no more than that."""

    def setUp(self):
        """A copy of the program where everybody may run it."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        self.program = shutil.copy(harness.SCALENE_ATTACH, folder.name)
        os.chmod(self.program, 0o755)

    def dump_as_nobody(self, target, *options):
        return run_attach("dump", "--pid", target.pid, *options, prefix=as_nobody(),
                          program=self.program, cwd="/")

    def check_denied(self, program, case, *words):
        with Target(program, case) as target:
            answer = self.dump_as_nobody(target)
            self.refuse(answer, OWN_FAILURE, target.pid, *words)
            self.check_truth(target, self.dump(target))

    def test_another_user(self):
        self.check_denied("stacks.py", "plain", "user|uid", "root|0")

    def test_not_dumpable(self):
        self.check_denied("guarded.py", "undumpable", "dumpable")

    def test_more_capabilities(self):
        self.check_denied("guarded.py", "capable", "capabilit")

    def test_own_process_with_files_out_of_reach(self):
        """The same user may read the memory, even where the interpreter's files are closed to
        it."""
        if yama_scope() > 0:
            self.skipTest("Yama allows no user to look at a process that is no child")
        with Target("guarded.py", "nobodys") as target:
            dump = self.dump(target, prefix=as_nobody(), program=self.program, cwd="/")
            self.check_truth(target, dump)

    def test_seccomp(self):
        """Without process_vm_readv and ptrace: what stands still can be read by other means."""
        filtered = [sys.executable, os.path.join(harness.PROGRAMS, "without_calls.py")]
        with Target("stacks.py", "plain") as target:
            target.wait_in(target.pid, "read")
            self.check_truth(target, self.dump(target, prefix=filtered))
        with Target("threads.py", "spinning") as target:
            answer = run_attach("dump", "--pid", target.pid, "--native", prefix=filtered)
            self.refuse(answer, OWN_FAILURE, target.pid, "seccomp")

    def test_yama(self):
        if yama_scope() < 0:
            self.skipTest("this kernel has no Yama")
        try:
            with open(YAMA, "r+") as file:
                before = file.read().strip()
                file.write("1")
        except OSError as error:
            self.skipTest("Yama cannot be set here: %s" % error)
        try:
            self.check_denied("guarded.py", "nobodys", "yama", "ptrace_scope")
        finally:
            with open(YAMA, "w") as file:
                file.write(before)


def yama_scope():
    try:
        with open(YAMA) as file:
            return int(file.read())
    except OSError:
        return -1


class Meanwhile(harness.AttachTest):
    """A target that is no longer what it was: any honest answer, never a crash or a wrong stack."""

    def check_honest(self, answer, target):
        """Either a whole dump or one sentence."""
        if answer.returncode == 0:
            self.assertEqual(answer.stderr, b"")
            self.check_shape(harness.json.loads(answer.stdout.decode()), target)
        else:
            self.refuse(answer, OWN_FAILURE, target.pid)

    def test_target_ends(self):
        """Killed at another moment of the dump each time; the last ones after all of it."""
        seen = set()
        for turn in range(24):
            with Target("threads.py", "many", "20") as target:
                options = ["--json", "--native"] if turn % 2 else ["--json"]
                attach = harness.start_attach("dump", "--pid", target.pid, *options)
                for _ in range(turn * turn * 40):
                    os.getppid()
                target.kill()
                output, error = attach.communicate(timeout=harness.PATIENCE_S)
                self.check_honest(
                    subprocess.CompletedProcess([], attach.returncode, output, error), target
                )
                seen.add(attach.returncode)
        self.assertIn(OWN_FAILURE, seen)

    def test_target_that_is_just_starting(self):
        """From its first instruction on: not yet a Python, or one that has no threads yet."""
        for _ in range(20):
            process = subprocess.Popen(
                harness.CURRENT.command("-c", "import sys; sys.stdin.read()"),
                stdin=subprocess.PIPE,
            )
            with process:
                stand_in = type("Started", (), {"pid": process.pid,
                                                "interpreter": harness.CURRENT})
                answer = run_attach("dump", "--pid", process.pid, "--json")
                self.check_honest(answer, stand_in)
                process.stdin.close()
            self.assertEqual(process.returncode, 0)

    def check_execs(self, **started):
        """Looked at until an exec came in between, which few dumps meet, and often enough."""
        seen = []
        with Target("passing.py", "executes", **started) as target:
            while len(seen) < 40 or (OWN_FAILURE not in seen and len(seen) < 1000):
                options = ["--native"] if len(seen) % 2 else []
                answer = run_attach("dump", "--pid", target.pid, "--json", *options)
                self.check_honest(answer, target)
                if answer.returncode == 0:
                    self.assertTrue(harness.json.loads(answer.stdout.decode())["threads"])
                seen.append(answer.returncode)
        self.assertIn(OWN_FAILURE, seen)

    def test_target_execs(self):
        """It is another program before the dump is through, again and again."""
        self.check_execs()

    def test_target_execs_at_the_same_addresses(self):
        """Without randomised addresses the next program's are those of the last."""
        fixed = ["setarch", "-R"]
        if subprocess.run([*fixed, "true"]).returncode:
            self.skipTest("addresses cannot be had fixed here")
        self.check_execs(prefix=fixed)

    def test_more_threads_than_descriptors(self):
        """Each takes three; the limit is raised as far as it may be, and then some go without."""
        with Target("threads.py", "many", "50") as target:
            target.await_stand()
            for limits in ((64, 1024), (128, 128)):
                answer = run_attach(
                    "dump", "--pid", target.pid, "--json",
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limits))
                self.assertEqual((answer.returncode, answer.stderr), (0, b""))
                self.check_truth(target, harness.json.loads(answer.stdout.decode()))

    def test_threads_come_and_go(self):
        with Target("threads.py", "churning") as target:
            for turn in range(30):
                options = ["--native"] if turn % 3 == 0 else []
                thread = self.thread_of(self.dump(target, *options), target.pid)
                self.assertIn("churning", [f["name"] for f in thread["frames"]])


class Stopped(harness.AttachTest):
    def check_stopped(self, *options):
        with Target("threads.py", "many", "3") as target:
            target.stop()
            dump = self.dump(target, *options)
            self.assertEqual({t["state"] for t in dump["threads"]}, {"stopped"})
            self.check_truth(target, dump)
            self.assertTrue(target.is_stopped())
            target.go_on()

    def test_stays_stopped(self):
        self.check_stopped()

    def test_stays_stopped_with_native(self):
        self.check_stopped("--native")

    def test_stays_stopped_nonblocking(self):
        self.check_stopped("--nonblocking")

    def test_stopped_while_it_ran(self):
        with Target("threads.py", "spinning") as target:
            target.stop()
            for _ in range(5):
                thread = self.thread_of(
                    self.dump(target, "--native"), target.tids()[target.facts["tids"]["spinner"]]
                )
                self.assertEqual(thread["state"], "stopped")
                self.assertIn("spin", [frame["name"] for frame in thread["frames"]])
                harness.until(target.is_stopped, "a thread that goes back to its stop")
            target.go_on()

    def test_signals_are_not_lost(self):
        """Each signal sent while the target is looked at arrives, once."""
        with Target("threads.py", "signalled") as target:
            dumps = 0
            while dumps < 10:
                attach = harness.start_attach("dump", "--pid", target.pid, "--native", "--json")
                while attach.poll() is None:
                    os.kill(target.pid, signal.SIGUSR1)
                    self.assertEqual(target.hear(), {"signal": signal.SIGUSR1})
                _, error = attach.communicate(timeout=harness.PATIENCE_S)
                self.assertEqual(attach.returncode, 0, error)
                dumps += 1

    def test_another_tracer(self):
        """The kernel allows one: the second is told of the first."""
        strace = shutil.which("strace")
        if not strace:
            self.skipTest("needs strace")
        with Target("threads.py", "spinning") as target:
            first = subprocess.Popen([strace, "-f", "-o", os.devnull, "-e", "trace=none",
                                      "-p", str(target.pid)], stderr=subprocess.DEVNULL)
            tid = target.tids()[target.facts["tids"]["spinner"]]
            status = "/proc/%d/task/%d/status" % (target.pid, tid)
            traced = "TracerPid:\t%d\n" % first.pid
            harness.until(lambda: traced in harness.read_text(status), "strace to begin")
            answer = run_attach("dump", "--pid", target.pid, "--native")
            while answer.returncode == 0:  # met without a core, it could be read as it was
                answer = run_attach("dump", "--pid", target.pid, "--native")
            first.send_signal(signal.SIGINT)
            first.wait(harness.PATIENCE_S)
            self.refuse(answer, OWN_FAILURE, target.pid, r"\b%d\b" % first.pid, "strace")


class Output(harness.AttachTest):
    def test_full_disk(self):
        with Target("stacks.py", "plain") as target, open("/dev/full", "wb") as full:
            for options in ((), ("--json",)):
                answer = run_attach("dump", "--pid", target.pid, *options, stdout=full)
                self.refuse(answer, OWN_FAILURE, "no space|writ|full")

    def test_reader_that_went_away(self):
        """A closed pipe is no reason to shout, nor to leave the target stopped."""
        with Target("threads.py", "many", "50") as target:
            reading, writing = os.pipe()
            os.close(reading)
            answer = run_attach("dump", "--pid", target.pid, stdout=writing)
            os.close(writing)
            self.assertIn(answer.returncode, (-signal.SIGPIPE, OWN_FAILURE))
            self.assertFalse(target.is_stopped())

    def test_closed_standard_output(self):
        with Target("stacks.py", "plain") as target:
            answer = run_attach("-c", 'exec "$0" dump --pid %d >&-' % target.pid,
                                harness.SCALENE_ATTACH, program="sh")
            self.refuse(answer, OWN_FAILURE, "writ")


if __name__ == "__main__":
    harness.main()
