"""A process that a profiler follows, as a child of the one that it was told of, is steered and
guarded like that one; and nobody else is."""

import json
import os

import harness
from harness import OWN_FAILURE, Target, run_attach
from profiler import Launched, Profiler, attached

SHELL = ("sh", "-c", '"$@"; exit $?', "sh")


class Followed(harness.AttachTest):
    def child_of(self, profiler):
        """Whom a case of steered.py names, once the profiler has heard of it."""
        child = json.loads(profiler.heard.readline())["child"]
        profiler.await_listening(child)
        return child

    def check_steered(self, profiler, pid):
        for verb in ("off", "on"):
            self.assertIn("process %d, followed with process" % pid, profiler.tell(verb, pid))
            self.assertEqual(profiler.status(pid)["state"], verb)
        status, text = profiler.status(pid), profiler.ask("status", pid).stdout.decode()
        self.assertEqual(status["pid"], pid)
        self.assertEqual(status["profiler"]["pid"], profiler.process.pid)
        head = r"\Aprocess %d is profiled by process %d \(" % (pid, profiler.process.pid)
        self.assertRegex(text, head)

    def test_below_a_shell(self):
        with Launched(self, "alone", prefix=SHELL) as profiler:
            profiler.await_function(profiler.pid, "wait_for_step")
            self.check_steered(profiler, profiler.pid)
            self.assertIn("process %d, " % profiler.pid, profiler.tell("stop", profiler.pid))
            self.assertGreater(profiler.profile()["sampling"]["samples"], 0)
            self.refuse(profiler.ask("status", profiler.pid), OWN_FAILURE, "no profiler of yours")
            profiler.step()
            profiler.end(5)

    def test_spelt_as_an_option(self):
        with Launched(self, "alone", prefix=SHELL) as profiler:
            profiler.await_listening(profiler.pid)
            answer = run_attach("--off", "--pid", profiler.pid, env=profiler.env)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            self.assertEqual(profiler.status(profiler.pid)["state"], "off")

    def test_second_profiler(self):
        """It is told of the first, which takes no notice."""
        with Launched(self, "alone", prefix=SHELL) as profiler:
            profiler.await_samples(profiler.pid)
            second = run_attach("--pid", profiler.pid, env=profiler.env)
            self.refuse(second, OWN_FAILURE, "already", r"\b%d\b" % profiler.process.pid,
                        "stop --pid %d" % profiler.pid)
            profiler.await_more_samples(profiler.pid)

    def test_orphan(self):
        """No ancestor of it tells who follows it."""
        with Launched(self, "orphan") as profiler:
            child = self.child_of(profiler)
            profiler.step()
            self.check_steered(profiler, child)
            os.write(profiler.go, b"x")
            profiler.end(5)

    def test_not_followed(self):
        """Who looks at roots alone steers no child, and keeps nobody from profiling it."""
        with Launched(self, "parent", "--no-subprocesses") as profiler:
            child = json.loads(profiler.heard.readline())["child"]
            profiler.await_listening(profiler.pid)
            self.refuse(profiler.ask("off", child), OWN_FAILURE, "no profiler of yours", child)
            second = Profiler(self, "--pid", child)
            second.env = profiler.env
            with second:
                second.await_samples(child)
                self.assertEqual(second.status(child)["profiler"]["pid"], second.process.pid)
                second.tell("stop", child)
                second.end()
            self.assertEqual(profiler.status(profiler.pid)["state"], "on")

    def test_of_two_profilers(self):
        """The one that follows it is steered, and nobody when that has ended."""
        with Target("threads.py", "spinning") as target:
            with Launched(self, "parent") as profiler:
                other = attached(self, target)
                other.env = profiler.env
                with other:
                    other.await_samples(target.pid)
                    child = self.child_of(profiler)
                    self.check_steered(profiler, child)
                    profiler.tell("stop", child)
                    self.refuse(profiler.ask("stop", child), OWN_FAILURE, "no profiler of yours")
                    self.assertEqual(other.status(target.pid)["state"], "on")
                os.write(profiler.go, b"x")
                profiler.end(5)


if __name__ == "__main__":
    harness.main()
