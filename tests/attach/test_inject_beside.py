"""Memory of Pythons that run already, where other threads are in the loader, or are C's alone, and
children are begun meanwhile."""

import os

import harness
import test_inject
import test_memory
import test_shim
from harness import Target


class BesideTest(test_inject.InjectTest):
    def check_rarely(self, target, window=1 << 17, steps=1):
        """With a window so large that the ring has room for what all others do."""
        found = wanted = 0
        for _ in range(steps):
            truth, profile = self.watch_step(target, "--allocation-sampling-window", str(window))
            line = self.lines_of(profile, "injected.py")[truth["line"]]
            found += line["allocated_mb"] * test_memory.MIB
            wanted += truth["size"]
        self.assertAlmostEqual(found, wanted, delta=5 * (wanted * window) ** 0.5)


class Loader(BesideTest):
    """Its locks are nobody's business: what threads wait for who have them, and children that were
    begun while they were held."""

    def test_walked(self):
        with Target("injected.py", "walked") as target:
            for _ in range(3):
                self.check_rarely(target)

    def test_forked(self):
        with Target("injected.py", "forking") as target:
            with self.attached(target) as run:
                run.await_listening(target.pid)
                for _ in range(3):
                    test_inject.step(target)
                run.tell("stop", target.pid)
                run.end()
            test_inject.step(target)

    def test_held(self):
        """Who stays there for long is in nobody's way while nothing is asked of the loader, and
        then there is a word of it."""
        with Target("injected.py", "held") as target:
            with self.attached(target) as run:
                run.await_listening(target.pid)
                test_inject.step(target)
                test_inject.step(target)
                run.tell("stop", target.pid)
                said = run.end()
            self.assertRegex(said,
                             r"^scalene-attach: the shim in process \d+ stays armed.*loader\n$")
            self.refuse(harness.run_attach("-q", "--memory", "-o", self.output, "--pid",
                                           target.pid), harness.OWN_FAILURE, "dynamic loader")
            test_inject.step(target)
            self.attach_briefly(target)
            self.assertFalse(test_inject.leads_to_shim(target.pid, "python"))


class Growing(BesideTest):
    """By how much CPython's blocks grow is told from what their allocator does."""

    def check_growing(self, env):
        with Target("injected.py", "growing", env=env) as target:
            truth, profile = self.watch_step(target)
            self.check_step(profile, truth)

    def test_growing(self):
        self.check_growing({})

    def test_mimalloc(self):
        if not test_shim.has_mimalloc():
            self.skipTest("its Python has no mimalloc")
        for name in ("mimalloc", "mimalloc_debug"):
            with self.subTest(name):
                self.check_growing({"PYTHONMALLOC": name})


class Native(BesideTest):
    def native_parts(self, source="native_parts.c", *words):
        if harness.CURRENT.root:
            self.skipTest("what is compiled here may not run in %s" % harness.CURRENT.root)
        library = os.path.join(self.folder, "native_parts.so")
        harness.build_c(self, library, source, "-shared", "-fPIC", "-pthread", *words)
        return library

    def test_functions_in_tables(self):
        """What is freed through a word of data is freed."""
        with Target("injected.py", "parts", self.native_parts()) as target:
            for _ in range(2):
                truth, profile = self.watch_step(target)
                self.check_step(profile, truth, blocks=900)
                line = self.lines_of(profile, "injected.py")[truth["line"]]
                self.assertLess(line["live_mb"], 0.02 * line["allocated_mb"])

    def test_operators(self):
        """Of C++, whose allocator has its own or calls malloc."""
        library = self.native_parts("operators.cpp", "-std=c++17", "-fsized-deallocation")
        for path in ["", *test_shim.ALLOCATORS]:
            with self.subTest(path), Target("injected.py", "operators", library,
                                            env={"LD_PRELOAD": path, **test_shim.QUIET}) as target:
                for _ in range(2):
                    truth, profile = self.watch_step(target)
                    self.check_step(profile, truth, blocks=4000)
                    line = self.lines_of(profile, "injected.py")[truth["line"]]
                    self.assertAlmostEqual(line["live_mb"] / line["allocated_mb"], 0.5, delta=0.1)

    @staticmethod
    def has_counted(run, pid):
        """So much that a share of it is within one percent."""
        answer = run.ask("flush", pid)
        return answer.returncode == 0 and run.profile()["totals"]["allocated_mb"] > 1024

    def test_right_in_a_storm(self):
        """The shares of its lines, however often somebody came and went before."""
        with Target("injected.py", "storm") as target:
            for _ in range(test_inject.FEW):
                with self.attached(target, "--allocation-sampling-window", "524287") as run:
                    run.await_listening(target.pid)
                    harness.until(lambda: self.has_counted(run, target.pid), "a gigabyte")
                    run.tell("stop", target.pid)
                    run.end()
                    profile = run.profile()
                lines = self.lines_of(profile, "injected.py").values()
                found = {word: sum(line["allocated_mb"] for line in lines if word in line["line"])
                         for word in ("rows = [bytes", "parts = [bytearray")}
                both = sum(found.values())
                # 401010 bytes and 4 bytearrays; 200 objects of 300 bytes and 33 on average, with
                # integers and a list that grows, which a free-threaded build does anew each time
                self.assertAlmostEqual(found["parts = [bytearray"] / both, 0.84, delta=0.05)

    def test_native_storm(self):
        """Threads that never wait for the GIL, and children that are begun meanwhile."""
        with Target("injected.py", "native_storm", self.native_parts()) as target:
            for _ in range(test_inject.FEW):
                self.attach_briefly(target)
            self.check_rarely(target, 1 << 20, 6)


if __name__ == "__main__":
    harness.main()
