"""Programs that are launched as a user would launch them, and what their profiles say of them."""

import os
import subprocess

import harness
from harness import PROGRAMS
from profiler import LOOKS_IN_ANY_CASE, FolderTest

BURN_S = 0.15  # so long that it is looked at
BURN = """
import time
while time.process_time() < %g: pass
""" % BURN_S


class LaunchTest(FolderTest):
    def options(self, *more):
        return [harness.SCALENE_ATTACH, "-q", *LOOKS_IN_ANY_CASE, "-o", self.output, *more]

    def python(self, *words):
        return harness.CURRENT.command(*words)

    def launched(self, *words):
        return self.python(harness.CURRENT.inner(os.path.join(PROGRAMS, "launched.py")), *words)

    def run_words(self, *words, stdin=b"", env=None, **options):
        return subprocess.run([str(word) for word in words], input=stdin, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=harness.PATIENCE_S,
                              env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **(env or {})),
                              **options)

    def python_of(self, profile, word):
        """The process that was a Python with this word."""
        (found,) = [each for each in profile["processes"]
                    if each["python"] and any(word in text for text in each["argv"])]
        return found

    def cpu_of(self, profile, ending, function):
        """CPU seconds of a function in the one file whose name ends so."""
        (name,) = [name for name in profile["files"] if name.endswith(ending)]
        return sum(each["cpu_python_s"] + each["cpu_native_s"] + each["cpu_kernel_s"]
                   for each in profile["files"][name]["functions"] if each["line"] == function)

    def check_burnt(self, seconds, ending="launched.py", function="burn", word="launched"):
        profile = self.profile()
        self.assertEqual(profile["mode"], "launch")
        process = self.python_of(profile, word)
        release = harness.CURRENT.release.rstrip("t")
        self.assertTrue(process["python"].startswith(release + "."), process)
        self.assertGreaterEqual(process["cpu_s"], 0.99 * seconds)
        self.assertGreater(self.cpu_of(profile, ending, function), 0.3 * seconds)
