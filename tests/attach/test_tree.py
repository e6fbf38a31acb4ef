"""A tree of processes is one profile: whoever was in it, each once, with the CPU seconds that the
kernel charged, whether the tree was launched or attached to."""

import json
import os
import shutil
import unittest

import harness
from harness import Target
from profiler import FolderTest, attached

# What the program notes of itself, and how often. What runs after an exec notes that.
KINDS = {"tree": 2, "pool": 4, "spawn": 2, "forkserver": 2, "subprocess": 1, "after_exec": 1,
         "shell": 2, "short": 10}
TOLERANCE = 0.03  # of the CPU seconds of all
THOROUGH = "3.12"  # how a tree is told of does not depend on the release


class Tree(FolderTest):
    def setUp(self):
        super().setUp()
        self.notes = os.path.join(self.folder, "notes")

    def environment(self):
        return {"TREE_NOTES": harness.CURRENT.inner(self.notes)}

    def check(self, root, kernel_s, missable=None):
        profile = self.profile()
        processes = profile["processes"]
        self.check_who(processes, missable)
        below = sum(each["cpu_s"] for each in processes if each["pid"] != root)
        self.assertAlmostEqual(below / kernel_s, 1, delta=TOLERANCE, msg=self.account(profile))
        self.check_sums(profile)

    def account(self, profile):
        rows = [[each["pid"], each["ppid"], each["argv"][-2:], each["cpu_s"], each["note"]]
                for each in profile["processes"]]
        return "\n".join(map(str, rows))

    def check_who(self, processes, missable):
        pids = [each["pid"] for each in processes]
        self.assertEqual(len(pids), len(set(pids)), "each once")
        noted = [json.loads(line) for line in harness.read_text(self.notes).splitlines()]
        kinds = [kind for _, kind in noted]
        self.assertEqual({kind: kinds.count(kind) for kind in KINDS}, KINDS)
        missed = [kind for pid, kind in noted if pid not in pids]
        self.assertLessEqual(set(missed), {missable})
        by_pid = {each["pid"]: each for each in processes}
        for pid, kind in noted:
            if kind != "short":
                self.assertRegex(by_pid[pid]["python"] or "", r"\A3\.\d+\.\d", kind)
                self.assertIsNone(by_pid[pid]["note"], kind)
        (shell,) = [each for each in processes if each["argv"][:1] == ["/bin/sh"]]
        # one that was seen before it became a shell was a Python then
        self.assertIn(shell["note"], {"not a Python", "not a Python any more"})
        self.assertIsNone(shell["python"])
        execed = by_pid[[pid for pid, kind in noted if kind == "after_exec"][0]]
        self.assertIn("after_exec", execed["argv"])

    def check_sums(self, profile):
        """Nothing twice: processes, threads and the whole are the same seconds."""
        kinds = ("cpu_python_s", "cpu_native_s", "cpu_kernel_s")
        whole = sum(profile["totals"][kind] for kind in kinds)
        threads = sum(thread[kind] for thread in profile["threads"] for kind in kinds)
        processes = sum(each["cpu_s"] for each in profile["processes"])
        self.assertAlmostEqual(threads / whole, 1, delta=1e-3)
        self.assertAlmostEqual(processes / whole, 1, delta=1e-3)
        lines = sum(line[kind] for file in profile["files"].values() for line in file["lines"]
                    for kind in kinds)
        self.assertLess(lines, whole)

    def launched(self, *prefix, options=()):
        launch = [*prefix, harness.SCALENE_ATTACH, "-q", *options, "-o", self.output, "--"]
        with Target("tree.py", "root", prefix=launch, env=self.environment()) as target:
            kernel_s = target.hear()["kernel_s"]
        self.check(target.facts["root"], kernel_s)

    def attached(self, *prefix, missable=None):
        with Target("tree.py", "root", "attached", env=self.environment()) as target:
            attach = harness.start_attach("-q", "-o", self.output, "--pid", target.pid,
                                          prefix=prefix)
            harness.until(lambda: harness.is_watched(attach.pid, target.pid), "a profiler")
            os.write(target.go, b"g")
            kernel_s = target.hear()["kernel_s"]
        _, error = attach.communicate(timeout=harness.PATIENCE_S)
        self.assertEqual((attach.returncode, error), (0, b""))
        self.check(target.pid, kernel_s, missable)

    def test_launched(self):
        self.launched()

    @unittest.skipUnless(harness.RELEASE == THOROUGH, "one release is enough for this one")
    def test_attached(self):
        self.attached()

    def without_news(self):
        """Process events are told in the first network namespace alone."""
        unshare = shutil.which("unshare")
        if os.geteuid() != 0 or not unshare:
            self.skipTest("needs root and unshare for a network namespace")
        return unshare, "--net"

    def test_launched_without_news_from_the_kernel(self):
        """Whoever has the shim tells of itself, however short it lives."""
        self.launched(*self.without_news())

    @unittest.skipUnless(harness.RELEASE == THOROUGH, "one release is enough for this one")
    def test_launched_without_memory(self):
        """The shim is there for that alone."""
        self.launched(*self.without_news(), options=["--cpu-only"])

    def test_attached_without_news_from_the_kernel(self):
        """We poll, and who lives for 20 ms can be gone before a busy machine lets us look; not
        what it used."""
        self.attached(*self.without_news(), missable="short")


class Footprint(harness.AttachTest):
    """What processes share is told apart from what is their own."""

    def test_what_is_shared(self):
        with Target("footprint.py") as target, attached(self, target) as profiler:
            pids = dict(target.facts["pids"], parent=target.pid)
            profiler.await_listening(target.pid)
            harness.until(lambda: self.all_found(profiler, pids), "a look at each")
            found = self.found
        table = target.facts["table"] / (1 << 20)
        for name, process in found.items():
            self.assertGreater(process["rss_mb"], table, name)
            self.assertLessEqual(process["rss_mb"], process["peak_rss_mb"] * 1.1 + 1)
            whole = process["shared_mb"] + process["private_mb"]
            self.assertAlmostEqual(whole / process["rss_mb"], 1, delta=1e-3, msg=name)
            self.assertLess(process["pss_mb"], process["private_mb"] + process["shared_mb"] / 1.9)
        self.assertGreater(found["writer"]["private_mb"], table / 2)
        self.assertLess(found["reader"]["private_mb"], table / 4)
        self.assertGreater(found["reader"]["shared_mb"], table)

    def all_found(self, profiler, pids):
        if profiler.ask("flush", pids["parent"]).returncode:
            return False
        listed = {each["pid"]: each for each in profiler.profile()["processes"]}
        self.found = {name: listed.get(pid, {}) for name, pid in pids.items()}
        return all(each.get("pss_mb") for each in self.found.values())


if __name__ == "__main__":
    harness.main()
