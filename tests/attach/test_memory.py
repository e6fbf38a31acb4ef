"""Memory of launched programs: programs that count what they allocate, and what a profile says of
their lines; and that nothing else of them is changed."""

import collections
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import time
import unittest

import harness
from harness import PROGRAMS
from profiler import LOOKS_IN_ANY_CASE, FolderTest, be_a_job

MIB = 1 << 20
WINDOW = 16384
FINE_WINDOW = 4096
SEEDS = 20
STEPS_ASLEEP = 30  # 75,000 samples, and as many ends
DOUBT = 5  # standard deviations
# What the interpreter itself allocates in a line: grown tables, code that specialises.
SLACK = 0.02
SLACK_BYTES = 256 << 10
DEBUG_BYTES = 40  # that a debug allocator adds to each block: 5 words of 8 bytes, at most
ALLOCATORS = ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2")
THOROUGH = ("3.12", "3.13t")  # what malloc is does not depend on the release
WITHOUT_SHIM = "the memory of Python processes that did not load the shim, or see another /proc, " \
               "is missing"
CHURNS = 3
LOOKS = 3  # where the ring was full, because others kept us from reading it


class MemoryTest(FolderTest):
    def options(self, *more, window=WINDOW):
        return [harness.SCALENE_ATTACH, "-q", *LOOKS_IN_ANY_CASE, "--memory",
                "--allocation-sampling-window", str(window), "-o", self.output, *more]

    def program(self, name, *words):
        return harness.CURRENT.command(harness.CURRENT.inner(os.path.join(PROGRAMS, name)), *words)

    def run_words(self, words, env=None, stdin=b"", **options):
        return subprocess.run([str(word) for word in words], input=stdin, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=harness.PATIENCE_S,
                              env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **(env or {})),
                              **options)

    def launch(self, *command, env=None, options=()):
        """What it says, line by line, and its profile; whole, as far as we have a say in it."""
        for _ in range(LOOKS):
            answer = self.run_words([*self.options(*options), "--", *command], env)
            self.assertEqual((answer.returncode, answer.stderr), (0, b""), answer.stderr)
            said = [json.loads(line) for line in answer.stdout.decode().splitlines()]
            profile = self.profile()
            if not profile["sampling"]["shim_lost"]:
                break
        self.assertEqual(profile["sampling"]["shim_lost"], 0)
        self.assertGreater(profile["sampling"]["shim_records"], 0, profile["notes"])
        return said, profile

    def lines_of(self, profile, program):
        (name,) = [name for name in profile["files"] if name.endswith(program)]
        return {line["lineno"]: line for line in profile["files"][name]["lines"]}

    def doubt_of(self, size, blocks, window=WINDOW):
        """The sampler's own error, and what the interpreter may add."""
        chance = -math.expm1(-size / blocks / window)  # that a block is sampled
        return (DOUBT * math.sqrt((1 - chance) / chance / blocks) + SLACK) * size + SLACK_BYTES

    def check_size(self, shown_mb, size, truth, what, more=0):
        doubt = self.doubt_of(truth["allocated"], truth["blocks"])
        shown = shown_mb * MIB
        text = "%s of %s: %d, and shown are %d, with a doubt of %d" % (
            what, truth["name"], size, shown, doubt)
        self.assertGreaterEqual(shown, size - doubt, text)
        self.assertLessEqual(shown, size + more + doubt, text)

    def check_line(self, line, truth, more=0):
        """`more` is what each block may have on top of what it was asked for."""
        more *= truth["blocks"]
        stays = truth["allocated"] - truth["freed"]
        self.check_size(line["allocated_mb"], truth["allocated"], truth, "allocated", more)
        self.check_size(line["n_malloc_mb"], truth["allocated"], truth, "n_malloc_mb", more)
        self.check_size(line["freed_mb"], truth["freed"], truth, "freed", more)
        self.check_size(line["live_mb"], stays, truth, "live", more if stays else 0)
        self.check_size(line["n_peak_mb"], truth["peak"], truth, "peak", more)
        self.assertLessEqual(line["at_peak_mb"], line["n_peak_mb"] + 1e-6)
        self.assertAlmostEqual(line["allocated_mb"], line["freed_mb"] + line["live_mb"], delta=0.01)
        if truth["python"]:
            self.assertGreaterEqual(line["n_python_fraction"], 0.7, truth["name"])
        elif truth["python"] is False:
            self.assertLessEqual(line["n_python_fraction"], 0.3, truth["name"])


class Lines(MemoryTest):
    def check_program(self, *flags, more=0, env=None):
        python, *words = self.program("memory_lines.py")[-2:]
        before = self.program("memory_lines.py")[:-2]
        (account,), profile = self.launch(*before, python, *flags, *words, env=env)
        lines = self.lines_of(profile, "memory_lines.py")
        for truth in account:
            with self.subTest(truth["name"]):
                self.check_line(lines[truth["line"]], truth, more)
        return account, profile

    def test_account(self):
        account, profile = self.check_program(env=harness.CURRENT.with_numpy())
        totals = profile["totals"]
        self.assertGreaterEqual(totals["allocated_mb"] * MIB * 1.03,
                                sum(each["allocated"] for each in account))
        self.assertAlmostEqual(totals["live_mb"], totals["allocated_mb"] - totals["freed_mb"],
                               delta=0.01)
        self.assertEqual(profile["sampling"]["allocation_window"], WINDOW)
        self.assertTrue(profile["memory"])
        self.check_stacks(profile)

    def check_stacks(self, profile):
        """Of each line those that end there have what it has."""
        live = collections.Counter()
        self.assertEqual(len(profile["memory_stacks"]), len(profile["memory_stacks_live_mb"]))
        for (frames, megabytes), stays in zip(profile["memory_stacks"],
                                              profile["memory_stacks_live_mb"]):
            self.assertLessEqual(stays, megabytes + 1e-3)  # its samples are whole bytes
            live[frames[-1]["filename_or_module"], frames[-1]["line"]] += stays
        for path, file in profile["files"].items():
            for line in file["lines"]:
                self.assertAlmostEqual(line["live_mb"], live[path, line["lineno"]], delta=1e-4)

    def setUp(self):
        super().setUp()
        if harness.CURRENT.free_threaded and "malloc" in self.id().split(".")[-1]:
            self.skipTest("a free-threaded build has mimalloc alone")

    def test_every_malloc(self):
        self.check_program(env={"PYTHONMALLOC": "malloc"})

    def test_development_mode(self):
        self.check_program("-X", "dev", more=DEBUG_BYTES)

    def test_malloc_debug(self):
        self.check_program(more=DEBUG_BYTES, env={"PYTHONMALLOC": "malloc_debug"})

    def test_no_bias(self):
        """Over many samples: the chance of all runs together is 0.35 % here."""
        found = collections.Counter()
        for _ in range(CHURNS):
            (truth,), profile = self.launch(*self.program("memory_churn.py"))
            line = self.lines_of(profile, "memory_churn.py")[truth["line"]]
            for key in ("allocated_mb", "freed_mb"):
                found[key] += line[key] * MIB / truth["allocated"] / CHURNS
        for key, share in found.items():
            self.assertAlmostEqual(share, 1, delta=0.02, msg=key)

    def settled(self, truth):
        """What of a line does not depend on when a free-threaded build frees what it has given
        up."""
        yield "allocated_mb", truth["allocated"]
        if truth["freed"] == truth["allocated"]:
            yield "freed_mb", truth["freed"]
        elif not truth["freed"]:
            yield "n_peak_mb", truth["peak"]

    @unittest.skipUnless(harness.RELEASE in THOROUGH, "two releases are enough for this one")
    def test_no_bias_in_the_mean(self):
        """Of many runs, each with chances of its own: what errors remain are not to one side."""
        shares = collections.defaultdict(list)
        for _ in range(SEEDS):
            (account,), profile = self.launch(
                *self.program("memory_lines.py"), env=harness.CURRENT.with_numpy(),
                options=("--allocation-sampling-window", FINE_WINDOW))
            lines = self.lines_of(profile, "memory_lines.py")
            for truth in account:
                for key, wanted in self.settled(truth):
                    shown = lines[truth["line"]][key] * MIB
                    shares[truth["name"], key].append(shown / wanted)
        for what, found in shares.items():
            with self.subTest(what):
                self.assertAlmostEqual(statistics.mean(found), 1, delta=0.02)

    @unittest.skipUnless(harness.RELEASE in THOROUGH, "two releases are enough for this one")
    def test_other_allocators(self):
        """Preloaded by the user, behind the shim."""
        if harness.CURRENT.root:
            self.skipTest("its root folder has none of them")
        maps = harness.CURRENT.command("-c", "print(open('/proc/self/maps').read())")
        kinds = [{}] if harness.CURRENT.free_threaded else [{}, {"PYTHONMALLOC": "malloc"}]
        for library in ALLOCATORS:
            env = {"LD_PRELOAD": library}
            if library.encode() not in self.run_words(maps, env).stdout:
                print("skipped: no %s here" % library, flush=True)
                continue
            for kind in kinds:
                with self.subTest(library, **kind):
                    self.check_program(env=dict(env, **kind))


class Children(MemoryTest):
    def test_forked_and_others(self):
        said, profile = self.launch(*self.program("memory_children.py"))
        lines = self.lines_of(profile, "memory_children.py")
        self.assertEqual(len(said), 3)
        for truth in said:
            shown = lines[truth["line"]]["allocated_mb"] * MIB
            self.assertAlmostEqual(shown / truth["allocated"], 1, delta=0.02, msg=truth["name"])
        pids = {process["pid"] for process in profile["processes"]}
        self.assertLessEqual({truth["pid"] for truth in said}, pids)

    def test_not_followed(self):
        """What children do is in no number when they are not wanted."""
        said, profile = self.launch(*self.program("memory_children.py"),
                                    options=["--no-subprocesses"])
        lines = self.lines_of(profile, "memory_children.py")
        for truth in said:
            self.assertEqual(lines[truth["line"]]["allocated_mb"], 0, truth["name"])
        self.assertGreaterEqual(profile["totals"]["allocated_mb"], 8)

    def launch_apart(self, *flags):
        """In a PID namespace of its own, in which it has other numbers."""
        unshare = ["unshare", "--pid", "--fork", *flags]
        if self.run_words([*unshare, "true"]).returncode:
            self.skipTest("no other namespace may be made")
        return self.launch(*unshare, *self.program("memory_children.py"))

    def test_other_numbers(self):
        said, profile = self.launch_apart()
        lines = self.lines_of(profile, "memory_children.py")
        for truth in said:
            shown = lines[truth["line"]]["allocated_mb"] * MIB
            self.assertAlmostEqual(shown / truth["allocated"], 1, delta=0.02, msg=truth["name"])
        inner = {truth["pid"] for truth in said}
        pids = {process["pid"] for process in profile["processes"]}
        self.assertFalse(inner & pids)
        for process in profile["processes"]:
            self.assertTrue(process["argv"], process)

    def test_other_proc(self):
        """Through which the ring cannot be found."""
        if harness.CURRENT.root:
            self.skipTest("its root folder has the /proc that it has")
        _, profile = self.launch_apart("--mount-proc")
        self.assertIn(WITHOUT_SHIM, profile["notes"])

    def test_shell_in_between(self):
        said, profile = self.launch("sh", "-c", '"$@"; exit 0', "sh",
                                    *self.program("memory_children.py", "in_program"))
        lines = self.lines_of(profile, "memory_children.py")
        shown = lines[said[0]["line"]]["allocated_mb"] * MIB
        self.assertAlmostEqual(shown / said[0]["allocated"], 1, delta=0.02)


class Interpreters(MemoryTest):
    def test_sub_interpreter(self):
        """Its lines are known by the state that runs there, and not by the thread's own."""
        (truth,), profile = self.launch(*self.program("memory_subinterpreter.py"))
        line = self.lines_of(profile, "memory_subinterpreter.py")[truth["line"]]
        self.assertAlmostEqual(line["allocated_mb"] * MIB / truth["allocated"], 1, delta=0.02)


class Pages(MemoryTest):
    def test_zeros_and_copies(self):
        (truth,), profile = self.launch(*self.program("memory_zeros.py"),
                                        env=harness.CURRENT.with_numpy())
        self.assertLess(truth["grown"], 5e6)
        lines = self.lines_of(profile, "memory_zeros.py")
        line = lines[truth["line"]]
        self.assertAlmostEqual(line["allocated_mb"] * MIB / truth["allocated"], 1, delta=0.02)
        self.assertAlmostEqual(line["live_mb"] * MIB / truth["allocated"], 1, delta=0.02)
        self.assertLessEqual(line["n_python_fraction"], 0.3)
        elapsed_s = profile["totals"]["elapsed_s"]
        for copy in truth["copies"]:
            copied = lines[copy["line"]]["n_copy_mb_s"] * elapsed_s * MIB
            self.assertAlmostEqual(copied / copy["copied"], 1, delta=0.1, msg=copy)
        self.assertAlmostEqual(profile["totals"]["copied_mb"] * MIB /
                               sum(copy["copied"] for copy in truth["copies"]), 1, delta=0.1)


    @unittest.skipUnless(harness.RELEASE in THOROUGH, "two releases are enough for this one")
    def test_more_mappings_than_are_followed(self):
        """They are neighbours, so that the kernel has one where we have many; and it is said."""
        source = "import mmap, os\n" \
                 "kept = [mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE) for _ in range(70000)]\n" \
                 "os._exit(0)"
        answer = self.run_words([*self.options("--profile-all", window=1), "--",
                                 *harness.CURRENT.command("-c", source)])
        self.assertEqual((answer.returncode, answer.stderr), (0, b""))
        self.assertTrue([note for note in self.profile()["notes"] if "so many mappings" in note])


class Unharmed(MemoryTest):
    def surroundings(self, words, env):
        answer = self.run_words(words, env, stdin=b"typed\n")
        return answer.returncode, json.loads(answer.stdout.decode()), answer.stderr

    def check_same(self, env):
        program = self.program("memory_surroundings.py", "a word", "--memory")
        bare = self.surroundings(program, env)
        profiled = self.surroundings([*self.options("--"), *program], env)
        own = bare[1]["environment"].pop("LD_PRELOAD", None)
        ours = profiled[1]["environment"].pop("LD_PRELOAD")
        self.assertEqual(profiled, bare)
        self.assertRegex(ours, r"\A/\S+/\$LIB/libscalene_shim\.so%s\Z" %
                         (":" + own if own else ""))
        self.assertFalse(os.path.exists(ours.split("/$LIB/")[0]), "left behind")

    def test_surroundings(self):
        self.check_same({})

    def test_its_own_preload(self):
        self.check_same({"LD_PRELOAD": "libm.so.6"})

    def test_cpu_only(self):
        """Nothing of ours, where it can be told that nothing is needed: not what stands in another
        root folder."""
        script = shutil.copy(os.path.join(PROGRAMS, "memory_surroundings.py"), self.folder)
        program = harness.CURRENT.command(harness.CURRENT.inner(script))
        options = self.options("--cpu-only", "--no-subprocesses", "--")
        profiled = self.surroundings([*options, *program], {})
        if harness.CURRENT.root:
            self.assertIn("libscalene_shim", profiled[1]["environment"].pop("LD_PRELOAD"))
        self.assertEqual(profiled, self.surroundings(program, {}))

    def test_when_it_is_on(self):
        program = self.program("memory_surroundings.py")
        for words, wanted in (([], True), (["--gpu"], False), (["--gpu", "--memory"], True),
                              (["--memory", "--cpu-only"], False)):
            answer = self.run_words([harness.SCALENE_ATTACH, "-q", *LOOKS_IN_ANY_CASE, "-o",
                                     self.output, *words, "--", *program])
            self.assertEqual(answer.returncode, 3, answer.stderr)
            self.assertIs(self.profile()["memory"], wanted, words)
            self.assertEqual("GPUs are not looked at yet" in self.profile()["notes"],
                             "--gpu" in words)

    def test_attaching_without_the_library(self):
        """Said before anything is done."""
        program = shutil.copy(harness.SCALENE_ATTACH, self.folder)
        with harness.Target("threads.py", "spinning") as target:
            answer = harness.run_attach("--memory", "-o", self.output, "--pid", target.pid,
                                        program=program)
            self.refuse(answer, harness.OWN_FAILURE, "libscalene_shim.so")
            self.assertFalse(os.path.exists(self.output))

    def test_without_the_library(self):
        """A program that was taken out of its folder profiles all the rest."""
        program = shutil.copy(harness.SCALENE_ATTACH, self.folder)
        words = [program, *self.options("--")[1:], *self.program("launched.py", "0.1", "exit", "5")]
        answer = self.run_words(words)
        self.assertEqual((answer.returncode, answer.stdout, answer.stderr), (5, b"", b""))
        (note,) = [note for note in self.profile()["notes"] if "memory" in note]
        self.assertIn("libscalene_shim.so", note)

    def test_no_preload_in_between(self):
        program = self.program("launched.py", "0.2")
        answer = self.run_words([*self.options("--"), "env", "-u", "LD_PRELOAD", *program])
        self.assertEqual((answer.returncode, answer.stderr), (0, b""))
        profile = self.profile()
        self.assertIn(WITHOUT_SHIM, profile["notes"])


class Ends(MemoryTest):
    """The program has what it needs, whatever becomes of the profiler."""

    def test_duration(self):
        """The profiling ends before the program; its later children start as if nothing were."""
        ends = "import subprocess, sys, time; time.sleep(0.6); " \
               "sys.exit(subprocess.call([sys.executable, '-c', 'exit(9)']))"
        answer = self.run_words([*self.options("-d", "0.2", "--profile-all", "--"),
                                 *harness.CURRENT.command("-c", ends)])
        self.assertEqual((answer.returncode, answer.stdout, answer.stderr), (9, b"", b""))

    def test_killed_profiler(self):
        with Storm(self) as storm:
            storm.hear()
            storm.process.kill()
            storm.process.wait()
            for _ in range(20):  # far more than the ring holds
                storm.step()
            self.assertEqual(storm.end(), {"result": 42, "children": ["fine\n"]})

    def test_profiler_asleep(self):
        """For 5 s, in which far more happens than the ring holds: the program does not wait, and
        what was lost is lost to its line alone."""
        with Storm(self) as storm:
            storm.hear()
            storm.step()
            storm.process.send_signal(signal.SIGTSTP)
            harness.until(lambda: harness.state_of(storm.process.pid) == "T", "its stop")
            for _ in range(STEPS_ASLEEP):
                storm.step()
            time.sleep(5)  # this is the time that it sleeps
            storm.process.send_signal(signal.SIGCONT)
            storm.step()
            self.assertEqual(storm.end()["result"], 42)
            storm.wait()
            profile, size = self.profile(), (STEPS_ASLEEP + 2) * storm.size
            line = self.lines_of(profile, "memory_storm.py")[storm.line]
            self.assertGreater(profile["sampling"]["shim_lost"], 0)
            self.assertLess(line["allocated_mb"] * MIB, 0.9 * size)
            self.assertGreaterEqual(line["allocated_mb"] * MIB, 1.9 * storm.size)
            for key in ("allocated_mb", "freed_mb"):
                self.assertAlmostEqual(profile["totals"][key] * MIB / size, 1, delta=0.03, msg=key)

    def test_off_and_on(self):
        with Storm(self) as storm:
            storm.hear()
            storm.step()
            storm.tell("off")
            storm.step()
            storm.step()
            storm.tell("on")
            storm.step()
            self.assertEqual(storm.end()["result"], 42)
            storm.wait()
            line = self.lines_of(self.profile(), "memory_storm.py")[storm.line]
            self.assertAlmostEqual(line["allocated_mb"] * MIB / storm.size, 2, delta=0.1)


class Storm:
    """memory_storm.py below a profiler: allocates as much in each step."""

    def __init__(self, test):
        self.test = test
        self.env = {"XDG_RUNTIME_DIR": test.folder}
        go_read, self.go = os.pipe()
        ready, ready_write = os.pipe()
        self.process = subprocess.Popen(
            test.options("--", *test.program("memory_storm.py")),
            pass_fds=(go_read, ready_write), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, preexec_fn=be_a_job,
            env=dict(os.environ, TARGET_PIPES="%d,%d" % (ready_write, go_read), **self.env))
        os.close(go_read)
        os.close(ready_write)
        self.heard = os.fdopen(ready)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.go)
        self.heard.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def hear(self):
        facts = json.loads(self.heard.readline())
        self.pid, self.line, self.size = facts["pid"], facts["line"], facts["size"]

    def step(self):
        os.write(self.go, b"x")
        self.test.assertEqual(json.loads(self.heard.readline()), "done")

    def tell(self, verb):
        answer = harness.run_attach(verb, "--pid", self.pid, env=self.env)
        self.test.assertEqual(answer.returncode, 0, answer.stderr)

    def end(self):
        os.write(self.go, b"e")
        return json.loads(self.heard.readline())

    def wait(self):
        _, error = self.process.communicate(timeout=harness.PATIENCE_S)
        self.test.assertEqual((self.process.returncode, error), (0, b""))


if __name__ == "__main__":
    harness.main()
