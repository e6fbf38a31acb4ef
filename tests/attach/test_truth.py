"""Are the numbers true? A program that keeps account of itself, and what a profile says of it: per
line, per kind of work and of waiting, and in sum."""

import harness
from own_account import cpu_of, look

TRUTH_S = 13
MOST_DISTANCE = 0.03  # between shares, in total variation
MOST_MISSING = 0.01  # of the kernel's account
LEAST_RIGHT = 0.9  # of waiting, and of the work of lines that do one kind
# So many looks that chance is small beside what is tested; 1 % gives some 150 a second.
MANY_LOOKS = ("--max-overhead", "5")
WAITS = ("sleep", "lock", "io", "child")


def own_shares(lines):
    """By line: Python, native, and kernel with idle; a line that is of no one kind has one part."""
    parts = {}
    for number, line in lines.items():
        work = {"rival": "python", "gil": "python"}.get(line["kind"], line["kind"])
        if line["kind"] in WAITS:
            parts[number, "idle"] = line["idle_s"]
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
        self.assertLessEqual(self.profile.distance, MOST_DISTANCE)

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
        """The kernel charges the last thread of a process for taking its memory down, and that may
        be the sleeper: it has then worked, but where it slept it has not."""
        (thread,) = [t for t in self.profile.json["threads"] if t["name"] == "sleeper"]
        ((_, line),) = self.of_kind("asleep")
        self.assertLessEqual(cpu_of(line), max(0.001, self.profile.said["sleeper_s"]))
        for sleeper in (thread, line):
            self.assertGreater(sleeper["wait_s"]["sleep"],
                               LEAST_RIGHT * self.profile.said["slept_s"])
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
            most = max(0.1 * line["wall_s"], self.profile.doubt_s([shown]))
            self.assertAlmostEqual(found, line["wall_s"], delta=most, msg=line)


if __name__ == "__main__":
    harness.main()
