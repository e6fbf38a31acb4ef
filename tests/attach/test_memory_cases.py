"""Scalene's own tests of memory, rewritten: which line allocates, who asked, what is a leak. And
Scalene itself reads the profiles, where cmake/scalene has brought it."""

import importlib.util
import os
import re

import harness
from harness import PROGRAMS
from profiler import FolderTest

CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
SCALENE = os.path.join(CACHE, "scalene-attach", "scalene-venv", "bin")
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Cases(FolderTest):
    def launch(self, case, *words, window=32768):
        program = harness.CURRENT.inner(os.path.join(PROGRAMS, "memory_cases.py"))
        answer = harness.run_attach("-q", "--memory", "--allocation-sampling-window", window,
                                    *words, "-o", self.output, "--",
                                    *harness.CURRENT.command(program, case))
        self.assertEqual((answer.returncode, answer.stderr), (0, b""))
        self.said = answer.stdout.decode()
        profile = self.profile()
        (self.file,) = [file for name, file in profile["files"].items()
                        if name.endswith("memory_cases.py")]
        return profile

    def line(self, word):
        (found,) = [line for line in self.file["lines"]
                    if line["line"].rstrip().endswith("# " + word)]
        return found

    def function(self, name):
        (found,) = [each for each in self.file["functions"] if each["line"] == name]
        return found

    def megabytes(self, word):
        return self.line(word)["n_malloc_mb"]

    def near(self, shown, truth):
        self.assertAlmostEqual(shown / truth, 1, delta=0.06)

    def leaves(self, profile):
        """MB by the innermost line of the program."""
        found = {}
        for frames, megabytes in profile["memory_stacks"]:
            leaf = frames[-1]
            if leaf["filename_or_module"].endswith("memory_cases.py"):
                found[leaf["line"]] = found.get(leaf["line"], 0) + megabytes
        return found

    def test_two_allocators(self):
        profile = self.launch("two_allocators")
        self.near(self.megabytes("large"), 48)
        self.near(self.megabytes("small"), 12)
        most = max(self.file["lines"], key=lambda line: line["n_malloc_mb"])
        self.assertEqual(most["lineno"], self.line("large")["lineno"])
        self.near(self.function("large")["n_malloc_mb"], 48)
        self.assertGreater(profile["max_footprint_mb"], 0.94 * 60)
        self.assertLess(profile["max_footprint_mb"], 70, "with what the interpreter itself has")
        self.assertEqual(profile["max_footprint_lineno"], self.line("small")["lineno"])

    def test_python_and_native(self):
        self.launch("python_and_native")
        self.assertGreaterEqual(self.line("python")["n_python_fraction"], 0.7)
        self.assertLessEqual(self.line("native")["n_python_fraction"], 0.3)
        self.near(self.megabytes("python"), 40)
        self.near(self.megabytes("native"), 40)

    def test_arithmetic_has_none(self):
        profile = self.launch("arithmetic")
        allocates = self.line("allocates")
        self.near(allocates["n_peak_mb"], 40)
        for word in ("multiplies", "subtracts"):
            self.assertLessEqual(self.line(word)["n_peak_mb"], 0.05 * allocates["n_peak_mb"])
        self.assertGreaterEqual(self.function("arithmetic")["n_malloc_mb"],
                                allocates["n_malloc_mb"])
        self.near(self.leaves(profile)[allocates["lineno"]], 40)

    def test_innermost_line(self):
        profile = self.launch("nested")
        self.near(self.megabytes("inner"), 30)
        self.assertLess(self.megabytes("outer"), 1)
        (stack,) = [frames for frames, megabytes in profile["memory_stacks"] if megabytes > 20]
        names = [frame["display_name"] for frame in stack]
        self.assertEqual(names[-3:], ["nested", "outer", "inner"])

    def test_threads(self):
        profile = self.launch("threads")
        self.near(self.megabytes("first"), 20)
        self.near(self.megabytes("second"), 60)
        self.assertLess(self.megabytes("sleeps"), 1)
        leaves = self.leaves(profile)
        self.near(leaves[self.line("second")["lineno"]], 60)

    def test_leak(self):
        self.launch("leak")
        leaks = self.file["leaks"]
        leaking = str(self.line("leaks")["lineno"])
        self.assertEqual(set(leaks), {leaking})
        self.assertGreater(leaks[leaking]["likelihood"], 0.9)
        self.assertGreater(leaks[leaking]["velocity_mb_s"], 0)
        self.near(self.line("leaks")["live_mb"], int(self.said) * 0.1 * 1e6 / (1 << 20))
        self.assertLess(self.line("rebinds")["n_peak_mb"], 11)

    def test_codes_that_follow_others(self):
        """One has the address of one that died, and its texts theirs: each has its own lines."""
        profile = self.launch("followers", "--profile-all")
        found = {os.path.basename(name): {line["lineno"]: line["n_malloc_mb"]
                                          for line in file["lines"] if line["n_malloc_mb"] > 5}
                 for name, file in profile["files"].items() if "made_" in name}
        self.assertEqual({name: set(lines) for name, lines in found.items()},
                         {"made_one.py": {11}, "made_two.py": {31}})
        for lines in found.values():
            for megabytes in lines.values():
                self.near(megabytes, 800 * 2e5 / (1 << 20))

    def test_unwatched(self):
        """What only its allocator knows of is on no line, and somebody has to say so."""
        def unseen(case):
            notes = "\n".join(self.launch(case)["notes"])
            return [int(n) for n in re.findall(r"(\d+) MB that process \d+ has came by no", notes)]

        (megabytes,) = unseen("unwatched")
        self.near(megabytes, 200)
        self.assertEqual(unseen("watched"), [])

    def test_scalene_reads_it(self):
        if not os.path.exists(os.path.join(SCALENE, "scalene")):
            self.skipTest("no Scalene here; cmake/scalene makes it")
        self.launch("two_allocators")
        spec = importlib.util.spec_from_file_location(
            "scalene_view", os.path.join(TESTS, "scalene", "scalene_view.py"))
        scalene_view = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(scalene_view)
        scalene_view.check_model(self.folder, self.output)
        shown = scalene_view.run(self.folder, os.path.join(SCALENE, "scalene"), "view", "--cli",
                                 self.output)
        self.assertIn("memory_cases.py", shown)


if __name__ == "__main__":
    harness.main()
