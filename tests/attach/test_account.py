"""No line is favoured, nothing is missing in sum, and we are no less often there when others are:
what does not depend on the release."""

import json
import math
import os
import re
import subprocess
import sys
import tempfile

import harness
import judge
import own_account
from own_account import Profile, cpu_of, look

EQUAL_S, WAITS_S, CALLS_S, SHORT_S, RATE_S = 4, 3, 3, 2, 1.5
EXEC_CHAINS, EXECS = 3, 8
FALSE_ALARM = 1e-4


class Equal(harness.AttachTest):
    def test_twelve_equal_lines(self):
        """None is off by more than chance allows, by the margins that the profile itself gives; and
        these are narrow enough to mean something."""
        profile = look(self.is_narrow, "equal.py", EQUAL_S, options=["--max-overhead", "20"])
        self.assertEqual(len(profile.twelve), 12)
        self.assertLess(profile.error, profile.mean / 3)
        limit = judge.t_quantile(FALSE_ALARM / 12, 1000)
        deviations = [(share - profile.mean) / profile.error for share in profile.twelve]
        print("equal %-5s %d looks, worst of 12: %+.1f standard errors of %.2f %%" % (
            harness.CURRENT.release, profile.sampling["samples"], max(deviations, key=abs),
            profile.error), flush=True)
        self.assertLess(max(map(abs, deviations)), limit, deviations)

    @staticmethod
    def is_narrow(profile):
        """In percent. A line with little claims a small error: all have the same one."""
        twelve = [line for line in profile.lines.values() if "= sum(ROW" in line["line"]]
        base = profile.totals["idle_s"] + cpu_of(profile.totals)
        profile.twelve = [100 * cpu_of(line) / base for line in twelve]
        profile.mean = sum(profile.twelve) / 12
        profile.error = sum(line["error_percent"] for line in twelve) / 12 / 1.96
        return profile.error < profile.mean / 3


def makes_way():
    """Does the scheduler let tasks have short turns, and whoever has them before others? Linux 6.6
    to 6.11 lets whoever runs end his turn, in most cases, and tasks have no turns of their own."""
    release = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))
    return not (6, 6) <= release < (6, 12)


def first_count(profile):
    """Of wakes.py: its looks at the two lines, and the first one's share of their CPU time."""
    lines = [[line for line in profile.lines.values() if line["line"].rstrip().endswith(end)]
             for end in ("# first", "# second")]
    profile.counts = [sum(line["samples"] for line in some) for some in lines]
    own = [sum(map(cpu_of, some)) for some in lines]
    profile.share = own[0] / sum(own)


class Lag(harness.AttachTest):
    def test_looks_more_frequent_than_the_account(self):
        """Without a pause the kernel's account is of the last tick: CPU time is where looks were
        nevertheless, and not where they found the account to have gone on."""
        profile = Profile("wakes.py", CALLS_S, options=["--nonblocking", "--rate", 1000,
                                                        "--max-overhead", 20])
        first_count(profile)
        looks = profile.counts[0] / sum(profile.counts)
        print("lag %-5s %d looks, the first line has %.3f of them and %.3f of the CPU time" % (
            harness.CURRENT.release, sum(profile.counts), looks, profile.share), flush=True)
        self.assertGreater(sum(profile.counts), 300)
        self.assertAlmostEqual(profile.share, looks, delta=0.05)


class OneCore(harness.AttachTest):
    """Looks that wait until the program has nothing to do would favour where it comes to rest."""

    RATE, TURN_S = 200, 0.002  # which is the longest that a look may keep the next one waiting

    def setUp(self):
        if not makes_way():
            self.skipTest("Linux %s keeps who wakes up waiting" % os.uname().release)

    def check(self, seconds, *options):
        core = str(min(os.sched_getaffinity(0)))
        profile = look(self.is_even, "wakes.py", seconds, prefix=["taskset", "-c", core],
                       options=["--max-overhead", 20, *options])
        print("one core %-5s %s: %d looks at the first line, %d at the second; of the CPU time the"
              " first has %.3f, may be off by %.3f" % (
                  harness.CURRENT.release, " ".join(options) or "default", *profile.counts,
                  profile.share, profile.chance), flush=True)
        self.assertLess(profile.chance, 0.1)
        self.assertTrue(self.is_even(profile))

    @staticmethod
    def is_even(profile):
        """Each look counts as much as it is since the one before: that doubles the variance."""
        first_count(profile)
        limit = judge.t_quantile(FALSE_ALARM / 2, 1000)
        profile.chance = limit * math.sqrt(2 / sum(profile.counts)) / 2
        most = profile.chance + OneCore.RATE * OneCore.TURN_S / 8
        off = abs(profile.counts[0] / sum(profile.counts) - 0.5)
        return off < most and abs(profile.share - 0.5) < most

    def test_with_pauses(self):
        self.check(8, "--rate", str(self.RATE))

    def test_without_pauses(self):
        self.check(8, "--rate", str(self.RATE), "--nonblocking")


class Waits(harness.AttachTest):
    """A thread that sleeps is left alone for a while; how long it waited where is right still."""

    @staticmethod
    def shares(profile):
        shown = {word: sum(sum(line["wait_s"].values()) for line in profile.lines.values()
                           if line["line"].rstrip().endswith("# " + word)) for word in profile.said}
        return {word: shown[word] / own for word, own in profile.said.items()}

    def check(self, *arguments):
        """Once of some tries: others keep the looks from being at moments like any other."""
        for _ in range(own_account.LOOKS):
            profile = Profile("two_waits.py", WAITS_S, *arguments, options=["--max-overhead", 20])
            shares = self.shares(profile)
            print("waits %-5s long %.3f, brief %.3f of what they were, %d looks" % (
                harness.CURRENT.release, shares["long"], shares["brief"],
                profile.sampling["samples"]), flush=True)
            if abs(shares["long"] - 1) < 0.05 and abs(shares["brief"] - 1) < 0.35:
                return
        self.fail(shares)

    def test_two_waits(self):
        self.check(1, 1)

    def test_two_waits_of_many(self):
        """More threads than are asked at each look."""
        self.check(12, 5)


class Calls(harness.AttachTest):
    def test_brief_calls(self):
        """Where it comes back from the kernel a thread can be stopped at once, elsewhere only when
        the request has travelled: calls that take a twentieth of its time are not met in half of
        the looks. Once of some tries: it takes a core for the thread and one for us."""
        if len(os.sched_getaffinity(0)) == 1:
            self.skipTest("one core: whoever runs there holds it")
        for _ in range(own_account.LOOKS):
            profile = Profile("brief_calls.py", CALLS_S)
            found = sum(cpu_of(line) for line in profile.lines.values()
                        if line["line"].rstrip().endswith("# call")) / cpu_of(profile.totals)
            own = profile.said["calls"] / profile.said["all"]
            print("calls %-5s %.3f, their own account %.3f, %d looks" % (
                harness.CURRENT.release, found, own, profile.sampling["samples"]), flush=True)
            if abs(found - own) < 0.05:
                return
        self.fail((found, own))


class Names(harness.AttachTest):
    def test_renamed_in_its_sleep(self):
        """Nobody reads the stack of a thread again that does not move, but its name."""
        threads = Profile("renamed.py", SHORT_S).json["threads"]
        (sleeper,) = [thread for thread in threads if thread["name"] in ("before", "after")]
        self.assertEqual(sleeper["name"], "after")
        self.assertGreater(sleeper["wait_s"]["sleep"], SHORT_S / 2)


class Account(harness.AttachTest):
    def test_threads_that_end(self):
        """They live between two looks, and yet nothing is missing in sum. Their lines have what
        looks have met, or what is known to be theirs; the rest has no line."""
        profile = Profile("short_threads.py", SHORT_S)
        wanted = profile.said["process_s"]
        self.assertAlmostEqual(cpu_of(profile.totals), wanted, delta=0.02 * wanted + 0.02)
        (process,) = profile.json["processes"]
        self.assertAlmostEqual(process["cpu_s"], cpu_of(profile.totals), delta=0.01 * wanted)
        (begin,) = [n for n, line in profile.lines.items() if line["line"].startswith("end =")]
        inside = [line for number, line in profile.lines.items() if number < begin]
        found = sum(map(cpu_of, inside))
        self.assertGreater(found, 0)
        self.assertLess(found, 1.1 * profile.said["threads_s"])

    def test_programs_after_each_other(self):
        """The account of a process goes on after an exec: what was told of is not told again."""
        for _ in range(EXEC_CHAINS):
            profile = Profile("exec_chain.py", EXECS)
            wanted = profile.said["process_s"]
            self.assertAlmostEqual(cpu_of(profile.totals), wanted, delta=0.02 * wanted + 0.01)

    def test_a_thread_in_two_interpreters(self):
        """It has a stack in each, and its time once, on the line that works."""
        profile = Profile("two_interpreters.py", SHORT_S)
        wanted = profile.said["process_s"]
        self.assertAlmostEqual(cpu_of(profile.totals), wanted, delta=0.02 * wanted + 0.02)
        (thread,) = profile.json["threads"]
        self.assertAlmostEqual(cpu_of(thread), wanted, delta=0.02 * wanted + 0.02)


class Rate(harness.AttachTest):
    def test_rate_beside_two_loops(self):
        """They share the target's core, not ours: that it waits for its turn to stand still is no
        pause. A third of the core is left to it, and each look takes it what is left of its turn:
        a quarter of the looks alone would be right, and of more loops than ours less. So of a CPU
        second that it has itself, by its own count, as many as alone are right. Were waiting a
        pause, it would be one in thirty."""
        core = str(min(os.sched_getaffinity(0)))
        program = os.path.join(harness.PROGRAMS, "busy_loop.py")
        alone, crowded = self.looks(core, program, beside=0), self.looks(core, program, beside=2)
        print("rate %-5s %.0f looks a CPU second alone, %.0f beside two loops" % (
            harness.CURRENT.release, alone, crowded), flush=True)
        self.assertGreater(crowded, 0.75 * alone)

    def looks(self, core, program, beside):
        """In each second for which it had the core."""
        pin = ["taskset", "-c", core]
        loops = [subprocess.Popen([*pin, sys.executable, program, "3600"]) for _ in range(beside)]
        command = [*pin, *harness.CURRENT.command(), harness.CURRENT.inner(program), RATE_S]
        with tempfile.TemporaryDirectory() as folder:
            output = os.path.join(folder, "profile.json")
            try:
                answer = harness.run_attach("-q", "-o", output, "--", *command)
            finally:
                for loop in loops:
                    loop.kill()
                    loop.wait()
            self.assertEqual(answer.returncode, 0, answer.stderr.decode())
            with open(output) as file:
                return json.load(file)["sampling"]["samples"] / float(answer.stdout)


if __name__ == "__main__":
    harness.main()
