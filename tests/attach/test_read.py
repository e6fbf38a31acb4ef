"""What a CPython of each release has on its stacks, compared with what it says of itself from
inside."""

import json
import unittest

import harness
from harness import Target


def version_at_least(*version):
    return unittest.skipIf(
        tuple(map(int, harness.RELEASE.rstrip("t").split("."))) < version,
        "CPython %s knows no such thing" % harness.RELEASE,
    )


class Frames(harness.AttachTest):
    """One test for each case of programs/stacks.py."""

    def check_case(self, *arguments):
        with Target("stacks.py", *arguments) as target:
            self.check_truth(target, self.dump(target))
            return target.facts

    def test_plain(self):
        self.check_case("plain")

    def test_nested(self):
        self.check_case("nested")

    def test_methods(self):
        facts = self.check_case("methods")
        names = [frame[0] for frame in facts["threads"][0]["frames"]]
        qualified = harness.CURRENT.version >= (3, 11)
        self.assertIn("Shape.Inner.method" if qualified else "method", names)

    def test_class_body(self):
        self.check_case("class_body")

    def test_comprehension(self):
        self.check_case("comprehension")

    def test_generator(self):
        self.check_case("generator")

    def test_generator_expression(self):
        self.check_case("generator_expression")

    def test_yield_from(self):
        self.check_case("yield_from")

    def test_generator_calls_generator(self):
        self.check_case("generator_calls_generator")

    def test_generator_sent(self):
        self.check_case("generator_sent")

    def test_generator_thrown(self):
        self.check_case("generator_thrown")

    def test_coroutine(self):
        self.check_case("coroutine")

    def test_coroutine_gathered(self):
        self.check_case("coroutine_gathered")

    def test_async_generator(self):
        self.check_case("async_generator")

    def test_async_comprehension(self):
        self.check_case("async_comprehension")

    def test_callbacks_through_c(self):
        self.check_case("callbacks")

    def test_special_methods(self):
        self.check_case("special_methods")

    def test_constructor_specialised(self):
        self.check_case("constructor_specialised")

    def test_calls_specialised(self):
        self.check_case("calls_specialised")

    def test_finalizer(self):
        self.check_case("finalizer")

    def test_exec_and_eval(self):
        self.check_case("exec_and_eval")

    def test_decorated(self):
        self.check_case("decorated")

    def test_star_arguments(self):
        self.check_case("star_arguments")

    def test_handled_exception(self):
        self.check_case("handled_exception")

    def test_ctypes_callback(self):
        self.check_case("through_ctypes")

    def test_python_and_c_by_turns(self):
        self.check_case("alternating")

    def test_at_import(self):
        self.check_case("at_import")

    def test_data_stack_chunk_of_1800_locals(self):
        with Target("depths.py", "many_locals") as target:
            self.check_truth(target, self.dump(target))
            names = [frame[0] for frame in target.facts["threads"][0]["frames"]]
            self.assertEqual(names.count("wide"), 21)

    def test_nonblocking(self):
        with Target("stacks.py", "callbacks") as target:
            self.check_truth(target, self.dump(target, "--nonblocking"))


class Lines(harness.AttachTest):
    def check_case(self, *arguments):
        with Target("stacks.py", *arguments) as target:
            self.check_truth(target, self.dump(target))
            return target.facts

    def test_multi_line_call(self):
        self.check_case("multi_line")

    @version_at_least(3, 11)
    def test_columns_in_utf8_bytes(self):
        facts = self.check_case("columns")
        self.assertTrue(all(frame[3] > 0 for frame in facts["threads"][0]["frames"]))

    def test_no_columns(self):
        """Without columns in the code (`-X no_debug_ranges`, or before 3.11) there is no such
        key."""
        with Target("stacks.py", "plain", flags=("-X", "no_debug_ranges")) as target:
            dump = self.dump(target)
            frames = self.thread_of(dump, target.pid)["frames"]
            self.assertEqual([frame for frame in frames if "column" in frame], [])
            self.check_truth(target, dump)

    def test_line_table_over_64_kib(self):
        self.assertGreater(self.check_case("long_line_table")["table"], 65536)

    def test_optimised(self):
        """-OO strips nothing that a stack needs."""
        with Target("stacks.py", "nested", flags=("-OO",)) as target:
            self.check_truth(target, self.dump(target))


class Strings(harness.AttachTest):
    def check_name(self, case, text):
        with Target("stacks.py", case, json.dumps(text)) as target:
            self.check_truth(target, self.dump(target))

    def test_identifiers(self):
        with Target("stacks.py", "identifiers") as target:
            self.check_truth(target, self.dump(target))

    def test_name_latin_1(self):
        self.check_name("named", "été_ÿ \x80")

    def test_name_bmp(self):
        self.check_name("named", "変数 \u0100\uffee")

    def test_name_astral(self):
        self.check_name("named", "a𐌀\U0010fffd")

    def test_name_with_quotes_and_control_characters(self):
        self.check_name("named", "\"\\/\t\n\x1b[31m\x7f")

    def test_name_empty(self):
        self.check_name("named", "")

    def test_name_of_300_characters(self):
        self.check_name("named", "long_" * 60)

    def test_name_with_lone_surrogate(self):
        """No UTF-8 can hold it: something stands in its place, and the document stays valid."""
        with Target("stacks.py", "named", json.dumps("a\udc80b")) as target:
            frames = self.program_frames(self.thread_of(self.dump(target), target.pid))
            self.assertEqual(frames[0][0], "a\ufffdb")

    def test_file_latin_1(self):
        self.check_name("file_named", "/tmp/Größe/été.py")

    def test_file_bmp(self):
        self.check_name("file_named", "/tmp/変/かな.py")

    def test_file_astral(self):
        self.check_name("file_named", "/tmp/𐌀/🐍.py")

    def test_file_of_1000_characters(self):
        self.check_name("file_named", "/" + "long/" * 199 + "f.py")


class Depth(harness.AttachTest):
    def check_depth(self, case, depth):
        """Exactly so many frames of that name, in one run, each on its own right line."""
        with Target("depths.py", case, depth) as target:
            tid = target.tids()[target.facts["tid"]]
            thread = self.thread_of(self.dump(target), tid)
            frames = [f for f in self.program_frames(thread) if f[0].endswith("down")]
            self.assertNotIn("error", thread)
            self.assertEqual(len(frames), depth)
            self.assertEqual(len({tuple(frame) for frame in frames}), 2, "leaf and caller lines")
            self.assertEqual(len({tuple(frame) for frame in frames[1:]}), 1, "all callers alike")
            below = [f[0].split(".")[-1] for f in self.program_frames(thread)[depth:]]
            self.assertIn("run", below, "threading's own frames, outside of all")

    def test_depth_1000(self):
        self.check_depth("deep", 1000)

    def test_depth_5000(self):
        self.check_depth("deep", 5000)

    def test_depth_100000(self):
        self.check_depth("deep", 100000)

    def test_depth_40000_of_400_locals(self):
        self.check_depth("deep_and_wide", 40000)

    def test_depth_500_through_c(self):
        self.check_depth("deep_through_c", 500)

    def test_depth_500_generators(self):
        self.check_depth("deep_generators", 500)


class Threads(harness.AttachTest):
    def check_case(self, *arguments):
        with Target("threads.py", *arguments) as target:
            dump = self.dump(target)
            self.check_truth(target, dump)
            return target.facts, dump

    def test_names(self):
        facts, _ = self.check_case("names")
        self.assertEqual(len(facts["threads"]), 9)

    def test_name_changed_later(self):
        self.check_case("renamed")

    def test_names_in_every_form_of_instance(self):
        self.check_case("instances")

    def test_dummy_thread(self):
        facts, _ = self.check_case("dummy")
        self.assertTrue(any("Dummy" in thread["name"] for thread in facts["threads"]))

    def test_thread_unknown_to_threading(self):
        """It has the name that the kernel knows."""
        with Target("threads.py", "raw") as target:
            tid = target.tids()[target.facts["raw_tid"]]
            thread = self.thread_of(self.dump(target), tid)
            with open("/proc/%d/task/%d/comm" % (target.pid, tid)) as file:
                self.assertEqual(thread["name"], file.read().rstrip("\n"))

    def test_200_threads(self):
        facts, dump = self.check_case("many", "200")
        self.assertEqual(len(facts["threads"]), 201)
        self.assertEqual(len(dump["threads"]), 201)

    def test_ids_after_churn(self):
        """Thread ids and names after many threads have come and gone."""
        facts, dump = self.check_case("churned")
        self.assertEqual(len(dump["threads"]), len(facts["threads"]))

    def test_thread_of_c(self):
        """A thread that no Python started, with a thread state while it runs a callback."""
        self.check_case("foreign")

    def test_os_threads_without_python_are_not_listed(self):
        with Target("threads.py", "without_python") as target:
            tids = [thread["tid"] for thread in self.dump(target)["threads"]]
            self.assertEqual(tids, [target.pid])
            self.assertEqual(len(target.tids()), 2)

    def test_one_function_in_three_threads(self):
        """Without a GIL each runs its own copy of the bytecode."""
        facts, _ = self.check_case("sharing_code")
        inner = [thread["frames"][0] for thread in facts["threads"]]
        shared = [line for name, _, line, _ in inner if name.endswith("shared")]
        self.assertEqual(len(set(shared)), 3)

    def test_child_of_a_fork(self):
        """It has a new id, which Python itself does not know where C forked, and the thread that
        forked has become its main thread."""
        for case in ("after_fork", "after_fork_of_c"):
            with Target("threads.py", case) as target:
                target.descend()
                dump = self.dump(target)
                self.assertEqual([thread["tid"] for thread in dump["threads"]], [target.pid])
                self.check_truth(target, dump)


class Gil(harness.AttachTest):
    def states(self, target):
        dump = self.dump(target)
        tids = target.tids()
        return {
            name: self.thread_of(dump, tids[tid]) for name, tid in target.facts["tids"].items()
        }

    def test_spinning_thread_holds_it(self):
        with Target("threads.py", "spinning") as target:
            tids = target.tids()
            target.wait_in(target.pid, "read")
            target.wait_in_lock(tids[target.facts["tids"]["sleeper"]])
            for _ in range(50):  # one that has just begun to wait may have it for a moment still
                threads = self.states(target)
                self.assertIn(threads["spinner"]["state"], ("running", "cpu", "gil"))
                if threads["spinner"]["holds_gil"]:
                    break
            self.assertEqual(threads["spinner"]["holds_gil"], not harness.CURRENT.free_threaded)
            for name in ("sleeper", "main"):
                self.assertFalse(threads[name]["holds_gil"], name)

    def test_nobody_holds_it(self):
        with Target("stacks.py", "plain") as target:
            target.wait_in(target.pid, "read")
            self.assertEqual([t["holds_gil"] for t in self.dump(target)["threads"]], [False])

    @unittest.skipIf(harness.RELEASE.endswith("t"), "no GIL in %s" % harness.RELEASE)
    def test_held_in_a_system_call(self):
        """One thread blocks in C with the GIL in its hands; the others wait for it."""
        with Target("threads.py", "holding") as target:
            tids = target.tids()
            names = target.facts["tids"]
            target.wait_in(tids[names["holder"]], "poll", "ppoll")
            for name in ("first", "second"):
                target.wait_in(tids[names[name]], "futex")
            seen = {"first": set(), "second": set()}
            for _ in range(50):
                threads = self.states(target)
                self.assertTrue(threads["holder"]["holds_gil"])
                self.assertEqual(threads["holder"]["state"], "io")
                for name, states in seen.items():
                    self.assertFalse(threads[name]["holds_gil"])
                    states.add(threads[name]["state"])
                if all("gil" in states for states in seen.values()):
                    break
            for name, states in seen.items():
                self.assertIn("gil", states)
                # each looks up from its wait every 5 ms, and then needs a core for a moment
                self.assertLessEqual(states, {"gil", "cpu", "running"})


class States(harness.AttachTest):
    CASES = {
        "sleep": ("sleep", ["clock_nanosleep", "nanosleep", "select", "pselect6"]),
        "lock": ("lock", ["futex"]),
        "timed_lock": ("lock", ["futex"]),
        "condition": ("lock", ["futex"]),
        "join": ("lock", ["futex"]),
        "read": ("io", ["read"]),
        "receive": ("io", ["recvfrom"]),
        "accept": ("io", ["accept4", "accept"]),
        "select": ("io", ["select", "pselect6"]),
        "poll": ("io", ["poll", "ppoll"]),
        "epoll": ("io", ["epoll_wait", "epoll_pwait"]),
        "child": ("child", ["wait4", "waitid"]),
    }

    def check_state(self, name):
        state, syscalls = self.CASES[name]
        with Target("threads.py", "waiting", name) as target:
            tid = target.tids()[target.facts["tids"]["waiter"]]
            target.settle()
            self.assertIn(target.syscall(tid)[0], [str(harness.SYSCALLS.get(s)) for s in syscalls])
            for options in ((), ("--nonblocking",)):
                thread = self.thread_of(self.dump(target, *options), tid)
                self.assertEqual(thread["state"], state)
                names = [frame["name"].split(".")[-1] for frame in thread["frames"]]
                self.assertIn("wait_" + name, names)

    def test_running(self):
        with Target("threads.py", "spinning") as target:
            tid = target.tids()[target.facts["tids"]["spinner"]]

            def state():
                found = self.thread_of(self.dump(target), tid)["state"]
                self.assertIn(found, {"running", "cpu"})
                return found

            # where others have all cores but its own, it waits for that as long as we look
            harness.until(lambda: state() == "running", "a thread that runs")

    def crowd_states(self, target):
        threads = self.dump(target)["threads"]
        states = [t["state"] for t in threads if (t["name"] or "").startswith("crowd")]
        self.assertEqual(len(states), 3)
        return states

    def test_waiting_for_a_core(self):
        """Three threads that need no GIL on one core: at least two of them wait for it."""
        with Target("threads.py", "crowded") as target:
            states = self.crowd_states(target)
            while not set(states) <= {"running", "cpu"}:  # one is on its way into its long call
                states = self.crowd_states(target)
            waiting = 0
            for _ in range(10):
                states = self.crowd_states(target)
                self.assertLessEqual(set(states), {"running", "cpu"})
                waiting += states.count("cpu")
            self.assertGreater(waiting, 0)


for _name in States.CASES:
    setattr(States, "test_" + _name, lambda self, name=_name: self.check_state(name))


class Collection(harness.AttachTest):
    def test_huge_collection(self):
        """While a collection runs, a "gc" frame stands innermost, the one who asked for it
        below."""
        with Target("threads.py", "collecting") as target:
            tid = target.tids()[target.facts["tids"]["collector"]]
            for _ in range(50):
                frames = self.thread_of(self.dump(target), tid)["frames"]
                if frames[0]["kind"] == "gc":
                    break
            self.assertEqual(frames[0]["kind"], "gc")
            self.assertEqual([f["kind"] for f in frames].count("gc"), 1)
            self.assertEqual(frames[1]["name"].split(".")[-1], "collect_always")

    def test_finalizer_in_a_collection(self):
        with Target("threads.py", "finalizing") as target:
            dump = self.dump(target)
            self.check_truth(target, dump)
            frames = self.thread_of(dump, target.pid)["frames"]
            names = [f["name"].split(".")[-1] if f["kind"] == "py" else "gc" for f in frames]
            if harness.CURRENT.version >= (3, 15):  # it notes the frame in which a collection began
                self.assertEqual(names[names.index("gc") - 1], "__del__")
                self.assertEqual(names[names.index("gc") + 1], "finalizing")
            self.assertEqual(names.count("gc"), harness.CURRENT.version >= (3, 15))

    def test_no_collection(self):
        with Target("stacks.py", "plain") as target:
            kinds = {frame["kind"] for frame in self.dump(target)["threads"][0]["frames"]}
            self.assertEqual(kinds, {"py"})


class SubInterpreters(harness.AttachTest):
    def test_threads_of_all(self):
        """Two sub-interpreters, each run by a thread of the main one and with a thread of its
        own."""
        with Target("subinterpreters.py", "two") as target:
            dump = self.dump(target)
            self.check_truth(target, dump)
            ids = {thread["interpreter"] for thread in dump["threads"]}
            self.assertEqual(ids, {0, *target.facts["interpreters"]})
            for caller in target.facts["callers"]:
                frames = self.thread_of(dump, target.tids()[caller], 0)["frames"]
                self.assertEqual(frames[0]["name"].split(".")[-1], "run")
            known = len(target.facts["threads"]) + len(target.facts["callers"])
            self.assertEqual(len(dump["threads"]), known)

    @version_at_least(3, 12)
    def test_own_gils(self):
        """Each has its own holder; where the same OS thread has a state in another, it is none."""
        with Target("subinterpreters.py", "own_gils") as target:
            tids = target.tids()
            spinners = {(tids[tid], number) for tid, number in target.facts["spinners"]}
            wanted = set() if harness.CURRENT.free_threaded else spinners
            for _ in range(50):  # one that waits for a core may be between two turns
                threads = self.dump(target)["threads"]
                holders = {(t["tid"], t["interpreter"]) for t in threads if t["holds_gil"]}
                self.assertLessEqual(holders, wanted)
                if holders == wanted:
                    break
            self.assertEqual(holders, wanted)
            states = {(thread["tid"], thread["interpreter"]) for thread in threads}
            self.assertLess(spinners | {(tid, 0) for tid, _ in spinners}, states)

    def test_one_that_ended(self):
        with Target("subinterpreters.py", "ended") as target:
            dump = self.dump(target)
            self.check_truth(target, dump)
            self.assertEqual({thread["interpreter"] for thread in dump["threads"]}, {0})


class FreeThreaded(harness.AttachTest):
    @unittest.skipUnless(harness.RELEASE.endswith("t"), "%s has a GIL" % harness.RELEASE)
    def test_no_thread_waits_for_a_gil(self):
        with Target("threads.py", "two_spinning") as target:
            for _ in range(20):
                threads = self.dump(target)["threads"]
                spinners = [t for t in threads if (t["name"] or "").startswith("spin")]
                self.assertEqual(len(spinners), 2)
                for thread in spinners:
                    self.assertIn(thread["state"], ("running", "cpu"))
                    self.assertIn("spin", [frame["name"] for frame in thread["frames"]])
                    self.assertFalse(thread["holds_gil"])


if __name__ == "__main__":
    harness.main()
