"""--record and --replay: a recorded run told again gives the same profile."""

import math
import os
import shutil
import tempfile

import harness
from harness import OWN_FAILURE, PROGRAMS, Target, run_attach
from profiler import FINE_RATE, Profiler, cpu_of, function_of, step

FORMATS = {"json": ".json", "html": ".html", "standalone": ".standalone.html",
           "collapsed": ".collapsed", "speedscope": ".speedscope.json", "pprof": ".pb.gz",
           "gecko": ".gecko.json", "perfetto": ".perfetto-trace"}


class Replay(harness.AttachTest):
    def setUp(self):
        """Programs where they have one name, inside and outside an interpreter's root folder."""
        folder = tempfile.TemporaryDirectory(dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name in ("phases.py", "target.py"):
            shutil.copy(os.path.join(PROGRAMS, name), self.folder)

    def test_same_profile(self):
        """All but the time of day; flushed and switched on the way."""
        recording = os.path.join(self.folder, "recording")
        with Target(os.path.join(self.folder, "phases.py"), "steps") as target:
            words = ("--pid", target.pid, "--profile-all", *FINE_RATE)
            with Profiler(self, *words, "--record", recording) as profiler:
                profiler.await_samples(target.pid)
                step(target)
                profiler.tell("flush", target.pid)
                step(target)
                profiler.tell("stop", target.pid)
                profiler.end()
                recorded = profiler.profile()
                again = run_attach("--replay", recording, *words, "-o", profiler.output)
                self.assertEqual(again.returncode, 0, again.stderr)
                replayed = profiler.profile()
        self.assertGreater(cpu_of(function_of(recorded, "second")), 0)
        self.check_same(without_time_of_day(replayed), without_time_of_day(recorded), "profile")

    def test_every_format(self):
        """Straight from a run, by its name or the output's extension, as by way of its profile."""
        recording = os.path.join(self.folder, "recording")
        with Target(os.path.join(self.folder, "phases.py"), "steps") as target:
            words = ("--pid", target.pid, "--profile-all", *FINE_RATE)
            with Profiler(self, *words, "--record", recording) as profiler:
                profiler.await_samples(target.pid)
                step(target)
                profiler.tell("stop", target.pid)
                profiler.end()
                profile = shutil.copy(profiler.output, self.folder)
        for name, extension in FORMATS.items():
            outputs = [os.path.join(self.folder, "by_" + way + extension)
                       for way in ("name", "extension", "export")]
            for answer in (run_attach("--replay", recording, *words, "-f", name, "-o", outputs[0]),
                           run_attach("--replay", recording, *words, "-o", outputs[1]),
                           run_attach("export", "-o", outputs[2], profile)):
                self.assertEqual(answer.returncode, 0, answer.stderr)
            sizes = [os.path.getsize(output) for output in outputs]
            self.assertGreater(min(sizes), 100, (name, sizes))
            # the moment of its beginning is another one, and moments have more or fewer digits
            self.assertLess(max(sizes) - min(sizes), 64 + max(sizes) // 50, (name, sizes))

    def check_same(self, one, other, where):
        """But for the last digits: a stream has nine of what is no whole number."""
        self.assertIs(type(one), type(other), where)
        if isinstance(one, dict):
            self.assertEqual(set(one), set(other), where)
            for key in one:
                self.check_same(one[key], other[key], where + "/" + key)
        elif isinstance(one, list):
            self.assertEqual(len(one), len(other), where)
            for number, items in enumerate(zip(one, other)):
                self.check_same(*items, "%s/%d" % (where, number))
        elif isinstance(one, float):
            self.assertTrue(math.isclose(one, other, rel_tol=1e-7, abs_tol=3e-6),
                            "%s: %r, %r" % (where, one, other))
        else:
            self.assertEqual(one, other, where)

    def test_bad_recordings(self):
        broken = os.path.join(self.folder, "broken")
        with open(broken, "w") as file:
            file.write("stream\t2\nnonsense\n")
        self.refuse(run_attach("--pid", 7, "--replay", broken), OWN_FAILURE, "broken", "line 2")
        self.refuse(run_attach("--pid", 7, "--replay", broken + "x"), OWN_FAILURE, "cannot be read")
        with open(broken, "w") as file:
            file.write("stream\t2\n")
        self.refuse(run_attach("--pid", 7, "--replay", broken), OWN_FAILURE, "no process 7")
        with Target("stacks.py", "plain") as target:
            nowhere = os.path.join(self.folder, "no folder", "recording")
            answer = run_attach("--pid", target.pid, "--record", nowhere)
            self.refuse(answer, OWN_FAILURE, "cannot be written")


def without_time_of_day(profile):
    """Moments count from the beginning of the run."""
    start = profile.pop("start_time_perf")
    del profile["start_time_absolute"]
    for file in profile["files"].values():
        for numbers in file["lines"] + file["functions"]:
            numbers["cpu_samples_list"] = [at - start for at in numbers["cpu_samples_list"]]
    return profile


if __name__ == "__main__":
    harness.main()
