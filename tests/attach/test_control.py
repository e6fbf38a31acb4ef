"""Steering a profiler that runs: on, off, flush, stop, status, signals, writing from time to time;
who may, and what the others are told."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import harness
from harness import OWN_FAILURE, PATIENCE_S, USAGE, Target, run_attach, until
from profiler import FINE_RATE, Launched, Profiler, attached, cpu_of, function_of, step

NOBODY = 65534
SUSPENSIONS = 50


class OnAndOff(harness.AttachTest):
    def check_steps(self, profiler, target, sampled):
        """All CPU time is that of these steps. What a step used after the last look at it may stand
        where the thread was met next, but none of it in a step that nobody looked at."""
        profile = profiler.profile()
        for name in ("first", "second", "third"):
            has = cpu_of(function_of(profile, name))
            if name in sampled:
                self.assertGreater(has, 0.5 * sampled[name], name)
            else:
                self.assertEqual(has, 0, name)
        self.assertAlmostEqual(cpu_of(profile["totals"]), sum(sampled.values()),
                               delta=0.1 * sum(sampled.values()))
        return profile

    def test_off_and_on_again(self):
        """What is used while it is off is nobody's: neither CPU time nor waiting; and no thread
        is paused."""
        sampled = {}
        with Target("phases.py", "steps") as target:
            began = time.monotonic()
            with attached(self, target, *FINE_RATE) as profiler:
                profiler.await_samples(target.pid)
                sampled["first"] = step(target)
                self.assertIn("off", profiler.tell("off", target.pid))
                off_at = time.monotonic()
                before = profiler.status(target.pid)
                step(target)
                after = profiler.status(target.pid)
                off_s = time.monotonic() - off_at
                self.assertIn("on", profiler.tell("on", target.pid))
                sampled["third"] = step(target)
                profiler.tell("stop", target.pid)
                profiler.end()
                on_s = time.monotonic() - began - off_s
                profile = self.check_steps(profiler, target, sampled)
        self.assertEqual([before["state"], after["state"]], ["off", "off"])
        for key in ("samples", "pauses", "paused_s", "dropped", "missed"):
            self.assertEqual(before["sampling"][key], after["sampling"][key], key)
        self.assertEqual(before["elapsed_s"], after["elapsed_s"])
        totals = profile["totals"]
        self.assertGreater(off_s, 0.5)
        self.assertGreater(totals["elapsed_s"], 0.9 * sum(sampled.values()))
        self.assertLess(totals["elapsed_s"], on_s)
        self.assertEqual(totals["elapsed_s"], profile["elapsed_time_sec"])
        self.assertLessEqual(cpu_of(totals) + totals["idle_s"], totals["elapsed_s"] + 0.05)
        (process,) = profile["processes"]
        self.assertAlmostEqual(process["cpu_s"], cpu_of(totals), delta=0.01)
        self.assertGreater(process["end_s"], totals["elapsed_s"] + 0.9 * off_s)
        self.assertTrue(any("off" in note for note in profile["notes"]), profile["notes"])

    def test_begins_off(self):
        with Target("phases.py", "steps") as target:
            with attached(self, target, "--off", *FINE_RATE) as profiler:
                profiler.await_listening(target.pid)
                step(target)
                status = profiler.status(target.pid)
                self.assertEqual((status["state"], status["sampling"]["samples"]), ("off", 0))
                profiler.tell("on", target.pid)
                profiler.await_samples(target.pid)
                sampled = {"second": step(target)}
                profiler.tell("stop", target.pid)
                profiler.end()
                self.check_steps(profiler, target, sampled)

    def test_off_to_the_end(self):
        """Nothing was collected: that is said, and what to do, and no file is made."""
        with Target("phases.py", "steps") as target:
            with attached(self, target, "--off") as profiler:
                profiler.await_listening(target.pid)
                self.refuse(profiler.ask("flush", target.pid), OWN_FAILURE, "nothing")
                self.assertIn("nothing", profiler.tell("stop", target.pid))
                self.assertRegex(profiler.end(OWN_FAILURE), "never switched on.*on --pid")
                self.assertFalse(os.path.exists(profiler.output))

    def test_twice_is_once(self):
        with Target("phases.py", "steps") as target:
            with attached(self, target, *FINE_RATE) as profiler:
                profiler.await_samples(target.pid)
                for verb in ("on", "off", "off", "on", "on"):
                    profiler.tell(verb, target.pid)
                    self.assertEqual(profiler.status(target.pid)["state"], verb)
                sampled = {"first": step(target)}
                profiler.tell("stop", target.pid)
                profiler.end()
                self.check_steps(profiler, target, sampled)

    def test_spelt_as_options(self):
        """They steer who is there, and begin to profile where nobody is."""
        with Target("threads.py", "spinning") as target:
            with Profiler(self, "--off", "--pid", target.pid) as profiler:
                profiler.await_listening(target.pid)
                for verb in ("on", "off"):
                    answer = run_attach("--" + verb, "--pid", target.pid, env=profiler.env)
                    self.assertEqual(answer.returncode, 0, answer.stderr)
                    self.assertEqual(profiler.status(target.pid)["state"], verb)
                answer = run_attach("--on", "--off", "--pid", target.pid, env=profiler.env)
                self.refuse(answer, USAGE, "--on", "--off")

    def test_launched_and_off(self):
        """A program that nobody sampled ends with its own status."""
        words = ["sh", "-c", '"$@"; exit 3', "sh", *harness.CURRENT.command("-c", "pass")]
        with Profiler(self, "--off", "--", *words) as profiler:
            self.assertIn("never switched on", profiler.end(3))

    def test_child_while_off(self):
        """It is listed, and nothing of what it did is counted."""
        with Launched(self, "child") as profiler:
            profiler.await_function(profiler.pid, "wait_for_step")
            profiler.tell("off", profiler.pid)
            profiler.step()
            profiler.tell("on", profiler.pid)
            profiler.await_more_samples(profiler.pid)
            profiler.step()
            profiler.end(5)
            profile = profiler.profile()
        self.assertEqual(len(profile["processes"]), 2)
        self.assertEqual([process["note"] for process in profile["processes"]], [None, None])
        self.assertEqual(cpu_of(function_of(profile, "work_of_child")), 0)
        self.assertGreater(cpu_of(function_of(profile, "wait_for_step")), 0)


class FlushStopStatus(harness.AttachTest):
    def test_flush(self):
        """A whole profile each time, renamed to its place; the profiling goes on."""
        with Target("threads.py", "spinning") as target:
            with attached(self, target, "--quiet") as profiler:
                profiler.await_function(target.pid, "spin")
                seen, samples = [], 0
                for _ in range(3):
                    profiler.await_samples(target.pid, samples)
                    self.assertIn(os.path.realpath(profiler.output),
                                  profiler.tell("flush", target.pid))
                    seen.append(os.stat(profiler.output).st_ino)
                    before, samples = samples, profiler.profile()["sampling"]["samples"]
                    self.assertGreater(samples, before)
                    self.assertGreater(cpu_of(function_of(profiler.profile(), "spin")), 0)
                self.assertNotEqual(seen[0], seen[1])
                self.assertEqual(sorted(os.listdir(profiler.folder.name))[0], "profile.json")
                profiler.tell("stop", target.pid)
                self.assertEqual(profiler.end(), "")

    def test_flush_that_cannot_be(self):
        """It goes to the temporary folder, whoever asked is told, and nothing ends."""
        with Target("threads.py", "spinning") as target:
            with attached(self, target) as profiler:
                profiler.await_function(target.pid, "spin")
                os.mkdir(profiler.output)
                told = profiler.tell("flush", target.pid)
                fallback = re.search(r"saved to (\S+)", told).group(1)
                self.addCleanup(os.unlink, fallback)
                self.assertNotEqual(fallback, os.path.realpath(profiler.output))
                os.rmdir(profiler.output)
                profiler.tell("stop", target.pid)
                self.assertIn("it went to " + fallback, profiler.end())
                self.assertGreater(profiler.profile()["sampling"]["samples"], 0)

    def test_stop(self):
        """As at the end of --duration: the profile is there when the command returns."""
        with Target("threads.py", "spinning") as target:
            with attached(self, target) as profiler:
                profiler.await_function(target.pid, "spin")
                told = profiler.tell("stop", target.pid)
                self.assertIn(os.path.realpath(profiler.output), told)
                self.assertGreater(cpu_of(function_of(profiler.profile(), "spin")), 0)
                self.assertIn("profile saved to " + profiler.output, profiler.end())
                self.refuse(profiler.ask("stop", target.pid), OWN_FAILURE, "no profiler")

    def test_stop_of_a_launch(self):
        """The program goes on, and its status is still ours."""
        with Launched(self, "alone") as profiler:
            profiler.await_function(profiler.pid, "wait_for_step")
            profiler.tell("stop", profiler.pid)
            self.assertEqual(profiler.profile()["mode"], "launch")
            self.assertGreater(cpu_of(function_of(profiler.profile(), "wait_for_step")), 0)
            self.assertIsNone(profiler.process.poll())
            profiler.step()
            profiler.end(5)

    def test_status(self):
        with Target("threads.py", "spinning") as target:
            with attached(self, target) as profiler:
                profiler.await_samples(target.pid)
                status = profiler.status(target.pid)
                text = profiler.ask("status", target.pid)
                profiler.tell("off", target.pid)
                text_off = profiler.ask("status", target.pid).stdout.decode()
        self.assertEqual(set(status), {"pid", "profiler", "mode", "state", "elapsed_s", "processes",
                                       "rss_mb", "sampling", "hottest", "output"})
        self.assertEqual((status["pid"], status["mode"], status["state"], status["processes"]),
                         (target.pid, "attach", "on", 1))
        self.assertEqual(status["profiler"]["pid"], profiler.process.pid)
        self.assertEqual(status["output"], profiler.output)
        self.assertGreater(status["elapsed_s"], 0)
        self.assertGreater(status["rss_mb"], 1)
        self.assertEqual((text.returncode, text.stderr), (0, b""))
        head = r"\Aprocess %d is profiled by process %d \(scalene-attach \S+\): on\n"
        self.assertRegex(text.stdout.decode(), head % (target.pid, profiler.process.pid))
        self.assertIn(profiler.output, text.stdout.decode())
        self.assertRegex(text_off, r"\Aprocess .*: off\n")


@contextlib.contextmanager
def starving(tid):
    """A thread has no core, because another program has the only one that it may run on."""
    core = {min(os.sched_getaffinity(0))}
    os.sched_setaffinity(tid, core)
    os.sched_setscheduler(tid, os.SCHED_IDLE, os.sched_param(0))
    rival = subprocess.Popen([sys.executable, "-c", "while True: pass"],
                             preexec_fn=lambda: os.sched_setaffinity(0, core))
    try:
        yield
    finally:
        rival.kill()
        rival.wait()


def cpu_charged(tid):
    return int(harness.read_text("/proc/%d/schedstat" % tid).split()[0]) / 1e9


def make_folder_of(path):
    """Unless another such file comes in between."""
    os.unlink(path)
    try:
        os.mkdir(path)
    except FileExistsError:
        return False
    return True


class ByItself(harness.AttachTest):
    def test_interval(self):
        """A new file each time, never half a one, while the profiling goes on."""
        with Target("threads.py", "spinning") as target:
            with attached(self, target, "--profile-interval", "0.05", "-q") as profiler:
                seen = []

                def look():
                    try:
                        samples = profiler.profile()["sampling"]["samples"]
                    except FileNotFoundError:
                        return profiler.has_failed()
                    if samples not in seen:
                        seen.append(samples)
                    return len(seen) == 5

                until(look, "profiles that follow each other")
                self.assertEqual(seen, sorted(seen))
                profiler.tell("stop", target.pid)
                self.assertEqual(profiler.end(), "")
                self.assertGreaterEqual(profiler.profile()["sampling"]["samples"], seen[-1])

    def test_interval_without_a_folder(self):
        """Said once, and the profile is not lost."""
        with Target("threads.py", "spinning") as target:
            with attached(self, target, "--profile-interval", "0.05") as profiler:
                profiler.await_samples(target.pid)
                until(lambda: os.path.exists(profiler.output), "a first profile")
                until(lambda: make_folder_of(profiler.output), "a folder in its place")
                written = profiler.status(target.pid)["elapsed_s"] + 0.3
                until(lambda: profiler.status(target.pid)["elapsed_s"] > written, "more turns")
                os.rmdir(profiler.output)
                profiler.tell("stop", target.pid)
                words = profiler.end()
        self.assertEqual(words.count("could not be written"), 1, words)
        os.unlink(re.search(r"it went to (\S+)", words).group(1))

    def check_signal(self, number):
        with Target("threads.py", "spinning") as target:
            with attached(self, target) as profiler:
                profiler.await_function(target.pid, "spin")
                profiler.process.send_signal(number)
                self.assertIn("profile saved to " + profiler.output, profiler.end())
                self.assertGreater(cpu_of(function_of(profiler.profile(), "spin")), 0)
                self.refuse(profiler.ask("status", target.pid), OWN_FAILURE, "no profiler")

    def test_stacks_that_were_cut(self):
        """Looks read 4,096 frames and 512 KiB of C stack at most; a profile says what it lacks."""
        for depth, is_cut in ((100, False), (6000, True)):
            with Target("depths.py", "deep", depth) as target:
                with attached(self, target) as profiler:
                    profiler.await_samples(target.pid, 1)
                    profiler.tell("stop", target.pid)
                    profiler.end()
                    notes = " ".join(profiler.profile()["notes"])
                    self.assertEqual("outermost frames are missing" in notes, is_cut, notes)

    def test_interrupted(self):
        """The profile is written; leaving the Target's block, it comes to its right result."""
        self.check_signal(signal.SIGINT)

    def test_terminated(self):
        self.check_signal(signal.SIGTERM)

    def test_last_met_without_a_core(self):
        """What a thread does between its last look and the end is its own, also where it only
        waited for a core then."""
        with Target("threads.py", "spinning") as target:
            spinner = target.tids()[target.facts["tids"]["spinner"]]
            with starving(spinner):
                profiler = attached(self, target, "--rate", "1").__enter__()
                self.addCleanup(profiler.__exit__)
                profiler.await_samples(target.pid)
            enough_s = cpu_charged(spinner) + 0.1
            until(lambda: cpu_charged(spinner) > enough_s, "work")
            profiler.tell("stop", target.pid)
            profiler.end()
            profile = profiler.profile()
        self.assertGreater(cpu_of(profile["totals"]), 0.1)
        self.assertGreater(cpu_of(function_of(profile, "spin")), 0.9 * cpu_of(profile["totals"]))

    def test_suspended(self):
        """By a terminal's key, and never while a thread stands still, which would stand as long."""
        with Target("threads.py", "spinning") as target:
            with attached(self, target, *FINE_RATE) as profiler:
                profiler.await_function(target.pid, "spin")
                for _ in range(SUSPENSIONS):
                    profiler.process.send_signal(signal.SIGTSTP)
                    until(lambda: harness.state_of(profiler.process.pid) == "T", "its stop")
                    threads = harness.thread_states(target.pid)
                    self.assertGreater(len(threads), 1)
                    self.assertNotIn("t", threads)
                    profiler.process.send_signal(signal.SIGCONT)
                    profiler.await_more_samples(target.pid)
                profiler.tell("stop", target.pid)
                profiler.end()

    def test_interrupted_while_off(self):
        with Target("threads.py", "spinning") as target:
            with attached(self, target) as profiler:
                profiler.await_function(target.pid, "spin")
                profiler.tell("off", target.pid)
                profiler.process.send_signal(signal.SIGINT)
                self.assertIn("profile saved to", profiler.end())

    def test_duration_while_off(self):
        """What counts is the time that is sampled, in all."""
        with Target("phases.py", "steps") as target:
            with attached(self, target, "--off", "--duration", "0.3", *FINE_RATE) as profiler:
                profiler.await_listening(target.pid)
                step(target)
                step(target)
                self.assertEqual(profiler.status(target.pid)["elapsed_s"], 0)
                profiler.tell("on", target.pid)
                step(target)
                profiler.end()
                self.assertAlmostEqual(profiler.profile()["elapsed_time_sec"], 0.3, delta=0.1)


class WhoMay(harness.AttachTest):
    VERBS = ("on", "off", "flush", "stop", "status")

    def test_nobody_profiles_it(self):
        with Target("stacks.py", "plain") as target:
            for verb in self.VERBS:
                self.refuse(run_attach(verb, "--pid", target.pid), OWN_FAILURE,
                            "no profiler", target.pid)

    def test_usage(self):
        for verb in self.VERBS:
            self.refuse(run_attach(verb), USAGE, "--pid")
            self.refuse(run_attach(verb, "--pid", 1, "--pid", 2), USAGE, "single")
            self.refuse(run_attach(verb, "--pid", 1, "more"), USAGE, "more")
            self.refuse(run_attach(verb, "--pid", 1, "--rate", 5), USAGE, "--rate", verb)
        self.refuse(run_attach("flush", "--pid", 1, "--json"), USAGE, "--json")

    def test_second_profiler(self):
        """It is told of the first, which takes no notice."""
        with Target("threads.py", "spinning") as target:
            with attached(self, target) as profiler:
                profiler.await_samples(target.pid)
                second = run_attach("--pid", target.pid, env=profiler.env)
                self.refuse(second, OWN_FAILURE, "already", r"\b%d\b" % profiler.process.pid,
                            "stop --pid %d" % target.pid)
                profiler.await_more_samples(target.pid)

    def test_same_target_twice(self):
        with Target("threads.py", "spinning") as target:
            with attached(self, target, "--pid", target.pid) as profiler:
                profiler.await_function(target.pid, "spin")
                profiler.tell("stop", target.pid)
                profiler.end()

    def test_each_of_two_targets(self):
        """One run, steered by the number of either."""
        with Target("threads.py", "spinning") as one, Target("threads.py", "spinning") as other:
            with Profiler(self, "--pid", one.pid, "--pid", other.pid) as profiler:
                profiler.await_function(one.pid, "spin")
                profiler.tell("off", one.pid)
                self.assertEqual(profiler.status(other.pid)["state"], "off")
                profiler.tell("stop", other.pid)
                profiler.end()
                self.assertEqual({process["pid"] for process in profiler.profile()["processes"]},
                                 {one.pid, other.pid})

    def test_killed_profiler(self):
        """What it left is nobody's: commands say so, and the next profiler takes its place."""
        with Target("threads.py", "spinning") as target:
            with attached(self, target) as profiler:
                profiler.await_samples(target.pid)
                profiler.process.kill()
                profiler.process.wait()
                left = [name for _, _, names in os.walk(profiler.folder.name) for name in names]
                self.assertEqual(left, ["%d.sock" % target.pid])
                self.refuse(profiler.ask("status", target.pid), OWN_FAILURE, "no profiler")
                profiler.process.communicate()
                with profiler:
                    profiler.await_function(target.pid, "spin")
                    profiler.tell("stop", target.pid)
                    profiler.end()

    def test_profiler_that_does_not_answer(self):
        """Whoever holds the socket and says nothing is not waited for for ever."""
        with tempfile.TemporaryDirectory() as folder, Target("stacks.py", "plain") as target:
            own = os.path.join(folder, "scalene-attach-%d" % os.geteuid())
            os.mkdir(own, 0o700)
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
                listening.bind(os.path.join(own, "%d.sock" % target.pid))
                listening.listen(1)
                env = {"XDG_RUNTIME_DIR": folder}
                self.refuse(run_attach("--pid", target.pid, env=env), OWN_FAILURE, "already")
                asking = harness.start_attach("status", "--pid", target.pid, env=env)
                verb = b""
                while not verb.startswith(b"status"):  # the second profiler only looked
                    with listening.accept()[0] as client:
                        verb = client.recv(64)
                _, error = asking.communicate(timeout=PATIENCE_S)
        self.assertEqual(asking.returncode, OWN_FAILURE)
        self.assertRegex(error.decode(), r"\Ascalene-attach: [^\n]*ended before it answered\n\Z")

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become another user")
    def test_another_user(self):
        """Another user's profiler is not to be steered, nor seen."""
        with Target("threads.py", "spinning") as target, tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            program = shutil.copy(harness.SCALENE_ATTACH, folder)
            with attached(self, target) as profiler:
                profiler.await_samples(target.pid)
                os.chmod(profiler.folder.name, 0o755)
                nobody = ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups"]
                answer = run_attach("stop", "--pid", target.pid, env=profiler.env, prefix=nobody,
                                    program=program, cwd="/")
                self.refuse(answer, OWN_FAILURE, "no profiler of yours", "sudo")
                self.assertEqual(profiler.status(target.pid)["state"], "on")


if __name__ == "__main__":
    harness.main()
