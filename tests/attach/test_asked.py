"""The shim in a Python that runs already, loaded by that Python itself, from 3.14 on, or else by a
call: who does, and that nothing is asked any more when nobody came by."""

import mmap
import os
import re
import shutil
import signal

import harness
import test_inject
import test_memory
from harness import Target, read_text
from test_oracle import OracleTarget

TIMES = 8


def readable_bytes(pid, addresses):
    """Zeros where nobody may read, as at the end of a thread's stack."""
    start, end = (int(number, 16) for number in addresses.split("-"))
    pages = []
    with open("/proc/%d/mem" % pid, "rb", 0) as memory:
        for page in range(start, end, mmap.PAGESIZE):
            memory.seek(page)
            try:
                pages.append(memory.read(mmap.PAGESIZE))
            except OSError:
                pages.append(bytes(mmap.PAGESIZE))
    return b"".join(pages)


class Asked(test_inject.InjectTest):
    PATH = b"/proc/self/./fd/"  # what is asked for begins so

    def setUp(self):
        super().setUp()
        knows = int(re.fullmatch(r"3\.(\d+)t?", harness.RELEASE)[1]) >= 14
        self.scripts = 1 if knows else 0

    def check_withdrawn(self, target):
        """It stands nowhere in what the target may write to, and is in no file."""
        self.check_no_files(target)
        for line in read_text("/proc/%d/maps" % target.pid).splitlines():
            addresses, access, _ = line.split(None, 2)
            if access.startswith("rw-p"):
                self.assertFalse(self.PATH in readable_bytes(target.pid, addresses), line)

    def check_asked(self, target):
        """Right the first time, and when it is there already: how often it was asked."""
        before = test_inject.descriptors(target.pid)
        for _ in range(2):
            truth, profile = self.watch_step(target)
            self.check_step(profile, truth)
            self.assertEqual(truth["imported"], [])
            self.check_left(target, before)
        return truth["asked"]

    def test_busy(self):
        for _ in range(test_memory.LOOKS):  # on a full machine it may get no turn in time
            with Target("injected.py", "asked", 1) as target:
                asked = self.check_asked(target)
            if asked == self.scripts:
                break
        self.assertEqual(asked, self.scripts)

    def test_disabled(self):
        for flags, env in ((("-X", "disable-remote-debug"), {}),
                           ((), {"PYTHON_DISABLE_REMOTE_DEBUG": "1"})):
            with Target("injected.py", "asked", 1, flags=flags, env=env) as target:
                self.assertEqual(self.check_asked(target), 0)

    def test_asleep(self):
        """Nobody comes by: what was asked is taken back, and who wakes up later finds nothing."""
        with Target("injected.py", "asked", 0) as target:
            target.wait_in(target.pid, "read")
            self.attach_briefly(target)
            self.assertGreater(len(test_inject.shim_mappings(target.pid)), 0)
            self.check_withdrawn(target)
            self.assertEqual(self.check_asked(target), 0)

    def test_watched(self):
        """Where somebody hears of a script, or forbids it, there is none, and no word of it."""
        for kind in ("audit", "trace", "profile"):
            with Target("injected.py", "watched", kind) as target:
                self.attach_briefly(target)
                truth = test_inject.step(target)
                self.assertGreater(len(test_inject.shim_mappings(target.pid)), 0)
            self.assertEqual((truth["events"], truth["words"]), ([], ""), kind)

    def test_signals(self):
        """What a handler raises meanwhile is handed on to the program, and nothing is said."""
        for _ in range(test_memory.LOOKS):  # on a full machine it may get no turn in time
            with Target("injected.py", "rung") as target:
                self.attach_briefly(target)
                truth = test_inject.step(target)
            self.assertEqual((truth["words"], truth["same"]), ("", True))
            self.assertEqual(truth["caught"], truth["rung"])
            if truth["rung"] == self.scripts:
                break
        self.assertEqual(truth["rung"], self.scripts)

    def test_threads_that_end(self):
        """Who was asked may end before it comes by, and its place may be another's by then."""
        with OracleTarget("oracle_threads.py") as target:
            for _ in range(TIMES):
                self.attach_briefly(target)
            self.check_no_files(target)
            target.finish()
            self.assertGreater(target.last["threads_a_second"], 10)

    def test_killed_while_asking(self):
        """At each byte that it writes; who comes next takes back what was asked."""
        strace = shutil.which("strace")
        if not strace:
            self.skipTest("needs strace")
        at = 1
        while True:
            kill = "inject=pwrite64:signal=KILL:when=%d" % at
            with Target("injected.py", "asked", 0) as target:
                target.wait_in(target.pid, "read")
                answer = harness.run_attach(
                    "-q", "--memory", "-d", "0.05", "-o", self.output, "--pid", target.pid,
                    prefix=(strace, "-o", os.devnull, "-e", "trace=pwrite64", "-e", kill))
                if answer.returncode in (0, harness.OWN_FAILURE):
                    break
                self.assertEqual(answer.returncode, -signal.SIGKILL, answer.stderr)
                self.attach_briefly(target)
                self.check_no_files(target)
                self.assertEqual(test_inject.step(target)["asked"], 0)
            at += 1
        self.assertGreater(at, 10)


if __name__ == "__main__":
    harness.main()
