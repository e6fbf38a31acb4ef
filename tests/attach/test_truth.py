"""Are the numbers true? Programs that keep account of themselves, and what a profile says of them:
per line, per kind of work and of waiting, and in sum."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import harness
import judge

TRUTH_S, EQUAL_S, SHORT_S, RATE_S = 13, 4, 2, 1.5
MOST_DISTANCE = 0.03  # between shares, in total variation
MOST_MISSING = 0.01  # of the kernel's account
LEAST_RIGHT = 0.9  # of waiting, and of the work of lines that do one kind
BUSY = 0.03  # of the time a program waits for a core: others starve it, and us
LOOKS = 2  # at programs that were starved
FALSE_ALARM = 1e-4
# So many looks that chance is small beside what is tested; 1 % gives some 150 a second.
MANY_LOOKS = ("--max-overhead", "5")
CPU_KEYS = ("cpu_python_s", "cpu_native_s", "cpu_kernel_s")
WAITS = ("sleep", "lock", "io", "child")


def cpu_of(entry):
    return sum(entry[key] for key in CPU_KEYS)


class Profile:
    """A program's own words and its profile."""

    def __init__(self, program, *arguments, options=(), prefix=()):
        path = os.path.join(harness.PROGRAMS, program)
        inner = harness.CURRENT.inner(path)
        with tempfile.TemporaryDirectory() as folder:
            output = os.path.join(folder, "profile.json")
            words = [*harness.CURRENT.command(), inner, *arguments]
            answer = harness.run_attach(
                "-q", *options, "-o", output, "--program-path", os.path.dirname(inner), "--",
                *words, prefix=prefix, env=harness.CURRENT.with_numpy(),
            )
            assert answer.returncode == 0, answer.stderr.decode()
            with open(output) as file:
                self.json = json.load(file)
        self.said = json.loads(answer.stdout.decode() or "null")
        self.totals = self.json["totals"]
        self.sampling = self.json["sampling"]
        files = [file for name, file in self.json["files"].items() if name.endswith(program)]
        self.lines = {line["lineno"]: line for line in files[0]["lines"]} if files else {}

    def starved(self):
        return self.totals["wait_s"]["cpu"] > BUSY * self.totals["elapsed_s"]

    def doubt_s(self, lines):
        """Where others keep program and sampler from working, looks are few and come when the
        scheduler lets them: then no more can be asked than what the profile itself claims."""
        base = self.totals["idle_s"] + cpu_of(self.totals)
        errors = sum(line["error_percent"] for line in lines)
        return errors / 100 * base if self.starved() else 0


def look(is_good, *arguments, **options):
    """A profile; another one where it is not good and others kept the program from working."""
    for _ in range(LOOKS):
        profile = Profile(*arguments, **options)
        if is_good(profile) or not profile.starved():
            break
    return profile


def own_shares(lines):
    """By line: Python, native, and kernel with idle; a line that is of no one kind has one part."""
    parts = {}
    for number, line in lines.items():
        work = {"rival": "python", "gil": "python"}.get(line["kind"], line["kind"])
        if line["kind"] in WAITS:
            parts[number, "idle"] = line["wall_s"]
        else:
            parts[number, work] = line["cpu_s"]
    return parts


def shown_shares(lines, profile):
    parts = {}
    for number, line in lines.items():
        shown = profile.lines[int(number)]
        if line["kind"] == "cpu":
            parts[number, "cpu"] = cpu_of(shown) + shown["idle_s"]
        else:
            waits = line["kind"] in WAITS
            parts[number, "python"] = shown["cpu_python_s"]
            parts[number, "native"] = shown["cpu_native_s"]
            parts[number, "idle" if waits else "kernel"] = shown["cpu_kernel_s"] + shown["idle_s"]
    return parts


def distance(one, other):
    """Total variation."""
    sums = sum(one.values()), sum(other.values())
    keys = set(one) | set(other)
    return sum(abs(one.get(k, 0) / sums[0] - other.get(k, 0) / sums[1]) for k in keys) / 2


class Truth(harness.AttachTest):
    """One program, looked at from all sides; on a machine that starves it, again."""

    @classmethod
    def setUpClass(cls):
        cls.profile = look(cls.is_near, "truth.py", TRUTH_S, options=MANY_LOOKS)
        cls.lines = cls.profile.said["lines"]

    @staticmethod
    def is_near(profile):
        lines = profile.said["lines"]
        profile.distance = distance(own_shares(lines), shown_shares(lines, profile))
        print("truth %-5s distance %.4f, %d looks, %.3f s without a core" % (
            harness.CURRENT.release, profile.distance, profile.sampling["samples"],
            profile.totals["wait_s"]["cpu"]), flush=True)
        return profile.distance <= MOST_DISTANCE

    def of_kind(self, *kinds):
        found = [(line, self.profile.lines[int(number)])
                 for number, line in self.lines.items() if line["kind"] in kinds]
        self.assertTrue(found)
        return found

    def test_shares(self):
        shown = [self.profile.lines[int(number)] for number in self.lines]
        own = sum(own_shares(self.lines).values())
        doubt = self.profile.doubt_s(shown) / 2 / own
        self.assertLessEqual(self.profile.distance, max(MOST_DISTANCE, doubt))

    def test_kinds_of_work(self):
        for kind in ("python", "native", "kernel"):
            found = self.of_kind(kind)
            right = sum(shown["cpu_%s_s" % kind] for _, shown in found)
            self.assertGreater(right, LEAST_RIGHT * sum(cpu_of(shown) for _, shown in found), kind)

    def test_a_digest_is_native(self):
        (shown,) = [line for line in self.profile.lines.values() if "sha256(BYTES)" in line["line"]]
        self.assertGreater(shown["cpu_native_s"], LEAST_RIGHT * cpu_of(shown))
        self.assertGreater(shown["native_top"][0]["seconds"], 0)

    def test_arrays_are_native(self):
        if not harness.CURRENT.with_numpy():
            self.skipTest("no numpy for this CPython")
        found = [line for line in self.profile.lines.values() if "numpy.s" in line["line"]]
        self.assertEqual(len(found), 2)
        visited = any(str(shown["lineno"]) in self.lines for shown in found)
        self.assertTrue(visited or self.profile.starved())
        native = sum(shown["cpu_native_s"] for shown in found)
        self.assertGreaterEqual(native, LEAST_RIGHT * sum(map(cpu_of, found)))

    def test_account(self):
        """All lines and processes together: what the kernel charged."""
        said = self.profile.said
        wanted = said["process_s"] + said["children_s"]
        found = cpu_of(self.profile.totals)
        listed = sum(process["cpu_s"] for process in self.profile.json["processes"])
        print("account %-5s found %.4f listed %.4f, own %.4f children %.4f" % (
            harness.CURRENT.release, found, listed, said["process_s"], said["children_s"]),
            flush=True)
        self.assertAlmostEqual(found, wanted, delta=MOST_MISSING * wanted)
        self.assertAlmostEqual(listed, wanted, delta=MOST_MISSING * wanted)
        threads = sum(cpu_of(thread) for thread in self.profile.json["threads"])
        self.assertAlmostEqual(threads, found, delta=MOST_MISSING * wanted)

    def test_sleepers_have_no_cpu(self):
        (sleeper,) = [t for t in self.profile.json["threads"] if t["name"] == "sleeper"]
        self.assertLess(cpu_of(sleeper), 0.001)
        self.assertGreater(sleeper["wait_s"]["sleep"], LEAST_RIGHT * TRUTH_S)
        lines = self.of_kind(*WAITS)
        own = sum(line["cpu_s"] for line, _ in lines)
        found = sum(cpu_of(shown) for _, shown in lines)
        most = MOST_DISTANCE * sum(line["wall_s"] for line, _ in lines)
        doubt = self.profile.doubt_s([shown for _, shown in lines])
        self.assertLess(found - own, max(most, doubt))

    def test_reasons_of_waits(self):
        """Waiting for a core is right where there is none."""
        kinds = WAITS + (("gil", "rival") if self.profile.said["gil"] else ())
        right = total = 0
        for line, shown in self.of_kind(*kinds):
            reason = {"rival": "gil"}.get(line["kind"], line["kind"])
            others = sum(shown["wait_s"].values()) - shown["wait_s"]["cpu"]
            right += shown["wait_s"][reason]
            total += others
            self.assertGreaterEqual(shown["wait_s"][reason], LEAST_RIGHT * others, line)
        self.assertGreaterEqual(right, LEAST_RIGHT * total)
        self.assertGreater(total, 0)

    def test_length_of_waits(self):
        for line, shown in self.of_kind(*WAITS):
            found = sum(shown["wait_s"].values()) + cpu_of(shown)
            most = max(0.15 * line["wall_s"], self.profile.doubt_s([shown]))
            self.assertAlmostEqual(found, line["wall_s"], delta=most, msg=line)


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
        found, own = sum(map(cpu_of, inside)), sum(profile.said["used"].values())
        self.assertGreater(found, 0)
        self.assertLess(found, 1.1 * own)


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
        pause, and looks come no less often for it than it comes to its turns."""
        core = str(min(os.sched_getaffinity(0)))
        program = os.path.join(harness.PROGRAMS, "busy_loop.py")
        alone = self.looks(core, program, beside=0)
        crowded = self.looks(core, program, beside=2)
        print("rate %-5s %d looks alone, %d beside two loops" % (
            harness.CURRENT.release, alone, crowded), flush=True)
        self.assertGreater(crowded, alone / 4)

    def looks(self, core, program, beside):
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
                return json.load(file)["sampling"]["samples"]


if __name__ == "__main__":
    harness.main()
