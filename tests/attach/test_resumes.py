"""The profiler killed at any moment: what it looked at runs on as if nobody had looked, and comes
to its right result."""

import os
import random
import signal
import time

import harness
from harness import Target
from profiler import FolderTest

# The release that has all the moments; what kills the profiler is the same code for the others.
THOROUGH = "3.12"
ATTACHED, LAUNCHED = (42, 8) if harness.RELEASE == THOROUGH else (4, 1)
LATEST_S = 0.03
EAGER = ("-q", "--rate", "1000", "--max-overhead", "100")


class Resumes(FolderTest):
    def setUp(self):
        super().setUp()
        self.random = random.Random(harness.RELEASE)

    def wait_for_a_moment(self):
        """A random one: the program is looked at some thousand times a second."""
        end = time.monotonic() + self.random.uniform(0, LATEST_S)
        while time.monotonic() < end:
            pass

    def check_goes_on(self, pid):
        """None of its threads is left stopped or traced."""
        harness.until(lambda: not self.standing(pid), "threads that go on")

    def standing(self, pid):
        texts = harness.thread_texts(pid, "status")
        self.assertNotEqual(texts, {})
        return [tid for tid, status in texts.items() if "TracerPid:\t0\n" not in status
                or "State:\tT" in status or "State:\tt" in status]

    def test_attached(self):
        with Target("unharmed.py") as target:
            for _ in range(ATTACHED):
                attach = harness.start_attach(*EAGER, "-o", self.output, "-p", target.pid)
                harness.until(lambda: harness.is_watched(attach.pid, target.pid), "a profiler")
                self.wait_for_a_moment()
                attach.kill()
                attach.communicate()
                self.assertEqual(attach.returncode, -signal.SIGKILL)
                self.check_goes_on(target.pid)

    def test_launched(self):
        for _ in range(LAUNCHED):
            launch = [harness.SCALENE_ATTACH, *EAGER, "-o", self.output, "--"]
            with Target("unharmed.py", "0.2", prefix=launch) as target:
                (program,) = harness.children_of(target.pid)
                self.wait_for_a_moment()
                os.kill(target.pid, signal.SIGKILL)
                self.assertEqual(target.process.wait(harness.PATIENCE_S), -signal.SIGKILL)
                self.check_goes_on(program)
                os.close(target.go)
                target.go = -1
                self.assertEqual(target.hear(), {"result": 42})


if __name__ == "__main__":
    harness.main()
