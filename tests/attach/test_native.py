"""`dump --native`: the C frames are there, each on its right side of the Python frames, and no
stack that a dump without them shows is ever lost or changed by the merge."""

import unittest

import harness
import installed
from harness import Target, state_of, until
from profiler import Profiler, cpu_of, function_of

LOST = "the native stack could not be followed to its beginning"


class NativeTest(harness.AttachTest):
    def frames_of(self, target, tid=None):
        thread = self.thread_of(self.dump(target, "--native"), tid or target.pid)
        self.assertNotIn("error", thread)
        return thread["frames"]

    def python_index(self, frames, name):
        """Where the innermost Python frame of that name stands."""
        for number, frame in enumerate(frames):
            if frame["kind"] == "py" and frame["name"].split(".")[-1] == name:
                return number
        raise AssertionError("no %s in %r" % (name, frames))

    def native_between(self, frames, inner, outer):
        """The native frames between two Python frames, which must follow one another."""
        between = frames[self.python_index(frames, inner) + 1 : self.python_index(frames, outer)]
        self.assertEqual({frame["kind"] for frame in between} - {"native"}, set())
        return between

    def check_native(self, frame):
        self.assertIs(type(frame["ip"]), int)
        self.assertIs(type(frame["offset"]), int)
        self.assertGreater(frame["ip"], 0)
        self.assertIn(type(frame["module"]), (str, type(None)))


class Order(NativeTest):
    def test_sleep(self):
        """What sleeps stands innermost, in the C library, called by the Python frame below."""
        with Target("threads.py", "waiting", "sleep") as target:
            tid = target.tids()[target.facts["tids"]["waiter"]]
            target.wait_in(tid, "clock_nanosleep", "nanosleep", "select", "pselect6")
            frames = self.frames_of(target, tid)
            above = frames[: self.python_index(frames, "wait_sleep")]
            self.assertEqual({frame["kind"] for frame in above}, {"native"})
            for frame in above:
                self.check_native(frame)
            symbols = " ".join(frame["name"] or "" for frame in above)
            self.assertRegex(symbols, "nanosleep|select")
            self.assertRegex(above[0]["module"], r"/libc[.-]")

    def test_outermost_is_the_start_of_the_thread(self):
        with Target("threads.py", "waiting", "sleep") as target:
            tid = target.tids()[target.facts["tids"]["waiter"]]
            target.wait_in(tid, "clock_nanosleep", "nanosleep", "select", "pselect6")
            dump = self.dump(target, "--native")
            for tid, start, module in (
                (tid, "clone|start_thread", "/libc[.-]"),
                (target.pid, "_start|libc_start", "python"),
            ):
                outer = self.thread_of(dump, tid)["frames"][-1]
                self.assertEqual(outer["kind"], "native")
                self.assertRegex(outer["module"], module)
                if outer["name"]:  # a stripped C library exports none of these
                    self.assertRegex(outer["name"], start)

    def test_sorted_key(self):
        """Between the key function and its caller stands the sort."""
        with Target("stacks.py", "alternating") as target:
            frames = self.frames_of(target)
            between = self.native_between(frames, "third", "second")
            self.assertGreater(len(between), 0)
            symbols = [frame["name"] or "" for frame in between if frame["name"]]
            if installed.has_symbols(harness.CURRENT.shared_library or harness.CURRENT.executable):
                self.assertTrue([name for name in symbols if "sort" in name], symbols)

    def test_python_and_c_by_turns(self):
        """Where C called Python stand native frames; a plain call of 3.11+ has none between."""
        with Target("stacks.py", "alternating") as target:
            frames = self.frames_of(target)
            for inner, outer in (
                ("third", "second"), ("fifth", "fourth"), ("seventh", "sixth"),
            ):
                self.assertGreater(len(self.native_between(frames, inner, outer)), 0, inner)
            if harness.CURRENT.version >= (3, 11):
                for inner, outer in (("second", "first"), ("fourth", "third"), ("sixth", "fifth")):
                    self.assertEqual(self.native_between(frames, inner, outer), [], inner)

    def test_ctypes_callback(self):
        """libc's own qsort, which knows nothing of Python, stands between the two."""
        with Target("stacks.py", "through_ctypes") as target:
            frames = self.frames_of(target)
            between = self.native_between(frames, "compare", "through_ctypes")
            self.assertTrue(
                [f for f in between if "qsort" in (f["name"] or "") and "/libc" in f["module"]],
                between,
            )

    def test_thread_of_c(self):
        """A callback in a thread that pthread_create began."""
        with Target("threads.py", "foreign") as target:
            tids = target.tids()
            (truth,) = [t for t in target.facts["threads"] if t["tid"] != t["ident"]
                        and t["frames"][-1][0].endswith("called_from_c")]
            frames = self.frames_of(target, tids[truth["tid"]])
            outside = frames[self.python_index(frames, "called_from_c") + 1 :]
            self.assertEqual({frame["kind"] for frame in outside}, {"native"})


class MadeCode(NativeTest):
    """A walk ends in code that nothing describes: it is shown, all Python frames below it, and it
    is said."""

    def frames_of(self, target, tid=None):
        thread = self.thread_of(self.dump(target, "--native"), tid or target.pid)
        self.assertEqual(thread["error"], LOST)
        return thread["frames"]

    def assert_made(self, frame):
        self.assertEqual((frame["kind"], frame["name"], frame["module"]), ("native", None, None))

    def test_calls_python(self):
        with Target("made_code.py", "calling") as target:
            frames = self.frames_of(target)
            (truth,) = target.facts["threads"]
            self.assertEqual(self.program_frames({"frames": frames}), truth["frames"])
            between = self.native_between(frames, "called", "calling")
            self.assertGreater(len(between), 1)
            self.assert_made(between[-1])
            beyond = frames[self.python_index(frames, "calling") :]
            self.assertEqual({frame["kind"] for frame in beyond}, {"py"})

    def test_runs(self):
        with Target("made_code.py", "spinning") as target:
            tid = target.tids()[target.facts["tids"]["spinner"]]
            frames = self.frames_of(target, tid)
            self.assert_made(frames[0])
            self.assertEqual(self.python_index(frames, "spin"), 1)
            self.assertEqual(frames[-1]["name"].split(".")[-1], "_bootstrap")

    def test_its_time_is_not_python(self):
        with Target("made_code.py", "spinning") as target:
            with Profiler(self, "--pid", target.pid, "--duration", "1") as profiler:
                profiler.end()
                profile = profiler.profile()
            self.assertFalse([note for note in profile["notes"] if "deeper" in note])
            spin = function_of(profile, "spin")
            self.assertLess(spin["cpu_python_s"], 0.1 * cpu_of(spin))
            self.assertEqual([(top["symbol"], top["module"]) for top in spin["native_top"]],
                             [("", "")])


class NoPause(NativeTest):
    def test_waits_for_a_child_of_vfork(self):
        """It would stop only when its child has ended, and two registers do not lead far."""
        with Target("threads.py", "waiting", "vfork") as target:
            tid = target.tids()[target.facts["tids"]["waiter"]]
            until(lambda: state_of(tid) == "D", "a thread that waits for its child")
            thread = self.thread_of(self.dump(target, "--native"), tid)
            frames = [frame for frame in thread["frames"] if frame["kind"] == "py"]
            self.assertEqual(self.python_index(frames, "wait_vfork"), 0)
            self.assertEqual(self.python_index(frames, "_bootstrap"), len(frames) - 1)
            self.assertEqual(thread["error"], LOST)


class NothingLost(NativeTest):
    def check_same(self, program, *arguments, **options):
        """The Python frames are those of the interpreter's own account, with and without C
        frames."""
        with Target(program, *arguments, **options) as target:
            dump = self.dump(target, "--native")
            self.check_truth(target, dump)
            for thread in dump["threads"]:
                self.assertIn("native", {frame["kind"] for frame in thread["frames"]})
                for frame in thread["frames"]:
                    if frame["kind"] == "native":
                        self.check_native(frame)

    def test_nested(self):
        self.check_same("stacks.py", "nested")

    def test_generators(self):
        self.check_same("stacks.py", "yield_from")

    def test_coroutine(self):
        self.check_same("stacks.py", "coroutine")

    def test_callbacks(self):
        self.check_same("stacks.py", "callbacks")

    def test_special_methods(self):
        self.check_same("stacks.py", "special_methods")

    def test_finalizer(self):
        self.check_same("stacks.py", "finalizer")

    def test_at_import(self):
        self.check_same("stacks.py", "at_import")

    def test_200_threads(self):
        self.check_same("threads.py", "many", "200")

    def test_sub_interpreters(self):
        with Target("subinterpreters.py", "two") as target:
            self.check_truth(target, self.dump(target, "--native"))

    @unittest.skipIf(harness.RELEASE == "3.12", "3.12 lets C call itself 1500 times at most")
    def test_deeper_than_what_is_copied(self):
        """The innermost native frames are there, all Python frames too, and it is said."""
        depth = 2000
        with Target("depths.py", "deep_through_c", depth) as target:
            thread = self.thread_of(self.dump(target, "--native"), target.facts["tid"])
        kinds = [frame["kind"] for frame in thread["frames"]]
        names = [(frame["name"] or "").split(".")[-1] for frame in thread["frames"]]
        self.assertEqual(names.count("down"), depth)
        self.assertEqual(thread["error"], "the native stack is deeper than what is shown")
        self.assertIn("native", kinds[: len(kinds) // 10])
        self.assertNotIn("native", kinds[-depth // 10 :])

    def test_deep_through_c(self):
        with Target("depths.py", "deep_through_c", "200") as target:
            frames = self.frames_of(target, target.tids()[target.facts["tid"]])
            down = [n for n, f in enumerate(frames) if f["name"] and f["name"].endswith("down")]
            self.assertEqual(len(down), 200)
            gaps = {after - before for before, after in zip(down, down[1:])}
            self.assertGreater(min(gaps), 1, "C between each two")

    def test_spinning(self):
        """Threads that run while they are looked at."""
        with Target("threads.py", "spinning") as target:
            tid = target.tids()[target.facts["tids"]["spinner"]]
            for _ in range(20):
                frames = self.frames_of(target, tid)
                names = [f["name"].split(".")[-1] for f in frames if f["kind"] == "py"]
                self.assertIn("spin", names)
                self.assertEqual(names[-1], "_bootstrap")
                self.assertIn("native", {frame["kind"] for frame in frames})

    def test_stopped_target(self):
        with Target("stacks.py", "callbacks") as target:
            target.stop()
            self.check_truth(target, self.dump(target, "--native"))
            self.assertTrue(target.is_stopped())
            target.go_on()


if __name__ == "__main__":
    harness.main()
