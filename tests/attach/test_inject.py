"""Memory of Pythons that run already: what is told of their lines, and that they are afterwards as
they were before, at whatever moment the profiler ends."""

import glob
import os
import platform
import random
import re
import shutil
import signal
import time

import harness
import profiler
import test_memory
from harness import Target, read_text

AGAIN, FEW = 100, 10
THOROUGH = ("3.12", "3.13t")  # for the others a few times are enough
GROWTH_KB = 512
KILLS = 30 if harness.RELEASE in THOROUGH else 12
CALLS_STEP = 12 if harness.RELEASE in THOROUGH else 24
CALLS_LEAST = 100  # calls of ptrace(): there are some hundreds
# ctypes asks the loader for functions of libc, and passes by all import tables
BY_ADDRESS = ("native_blocks", "native_regions")
# What an injection changes for good: the loader learns of a library.
CHANGED = re.compile(r"/(libc|ld|libpthread|libdl)[-.][^/]*$|/ld-linux[^/]*$")


def mappings(pid):
    """[range, access, offset, path] of all that is backed by a file, save the shim."""
    rows = []
    for line in read_text("/proc/%d/maps" % pid).splitlines():
        addresses, access, offset, _, inode, *path = line.split(None, 5)
        if inode != "0" and not path[0].startswith("/memfd:"):
            rows.append((addresses, access, offset, path[0]))
    return rows


def shim_mappings(pid):
    return [line for line in read_text("/proc/%d/maps" % pid).splitlines() if "/memfd:" in line]


def has_ring(pid):
    return any("scalene-ring" in line for line in shim_mappings(pid))


def resident_kb(pid):
    (found,) = re.findall(r"^VmRSS:\s+(\d+) kB", read_text("/proc/%d/status" % pid), re.M)
    return int(found)


def descriptors(pid):
    folder, found = "/proc/%d/fd" % pid, {}
    for name in os.listdir(folder):
        try:
            found[name] = os.readlink(os.path.join(folder, name))
        except FileNotFoundError:
            pass  # closed meanwhile
    return found


def bytes_of(pid, rows):
    found = {}
    with open("/proc/%d/mem" % pid, "rb", 0) as memory:
        for addresses, _, _, path in rows:
            start, end = (int(number, 16) for number in addresses.split("-"))
            memory.seek(start)
            found[addresses, path] = memory.read(end - start)
    return found


def leads_to_shim(pid, name):
    """Does any word of what is mapped of that library?"""
    ranges = [tuple(int(number, 16) for number in line.split()[0].split("-"))
              for line in shim_mappings(pid) if " r-xp " in line]
    rows = [row for row in mappings(pid) if name in row[3] and row[1].startswith("r")
            and "x" not in row[1]]
    words = [word for bytes_ in bytes_of(pid, rows).values()
             for word in memoryview(bytes_[:len(bytes_) // 8 * 8]).cast("Q")]
    return any(start <= word < end for word in words for start, end in ranges)


def step(target):
    os.write(target.go, b"x")
    return target.hear()


class InjectTest(test_memory.MemoryTest):
    def attached(self, target, *words):
        return profiler.attached(self, target, "-q", "--memory", "--allocation-sampling-window",
                                 str(test_memory.WINDOW), *words)

    def attach_briefly(self, target, *words, **options):
        """Attaches and detaches, and has nothing to complain of."""
        answer = harness.run_attach("-q", "--memory", "-d", "0.05", "-o", self.output, *words,
                                    "--pid", target.pid, **options)
        self.assertIn(answer.returncode, (0, harness.OWN_FAILURE))
        if answer.returncode:  # in so short a time there may be nothing to show
            self.assertRegex(answer.stderr.decode(), "(?i)nothing|too short|only waited")

    def watch_step(self, target, *words):
        """What the target says of a step, and the profile of it."""
        with self.attached(target, *words) as run:
            run.await_listening(target.pid)
            truth = step(target)
            run.tell("stop", target.pid)
            run.end()
            return truth, run.profile()

    def shim(self):
        return os.path.join(os.path.dirname(harness.SCALENE_ATTACH), "libscalene_shim.so")

    def check_no_files(self, target):
        """Of ours; the target opens others all the time."""
        self.assertEqual([link for link in descriptors(target.pid).values() if "memfd" in link], [])

    def check_left(self, target, before):
        self.assertEqual(descriptors(target.pid), before)

    def check_step(self, profile, truth, blocks=2000):
        line = self.lines_of(profile, "injected.py")[truth["line"]]
        doubt = self.doubt_of(truth["size"], blocks)
        self.assertAlmostEqual(line["allocated_mb"] * test_memory.MIB, truth["size"], delta=doubt)


class Numbers(InjectTest):
    def check_program(self, *flags, env=None, more=0):
        for _ in range(test_memory.LOOKS):
            with Target("injected.py", "lines", flags=flags, env=env) as target:
                truths, profile = self.watch_step(target)
            if not profile["sampling"]["shim_lost"]:
                break
        self.assertEqual(profile["sampling"]["shim_lost"], 0)
        lines = self.lines_of(profile, "memory_lines.py")
        for truth in truths["account"]:
            if truth["name"] not in BY_ADDRESS:
                with self.subTest(truth["name"]):
                    self.check_line(lines[truth["line"]], truth, more)

    def test_lines(self):
        self.check_program(env=harness.CURRENT.with_numpy())

    def test_development_mode(self):
        self.check_program("-X", "dev", more=test_memory.DEBUG_BYTES)

    def test_every_malloc(self):
        if harness.CURRENT.free_threaded:
            self.skipTest("a free-threaded build has mimalloc alone")
        self.check_program(env={"PYTHONMALLOC": "malloc"})

    def test_debugging_malloc(self):
        if harness.CURRENT.free_threaded:
            self.skipTest("a free-threaded build has mimalloc alone")
        self.check_program(env={"PYTHONMALLOC": "malloc_debug"}, more=test_memory.DEBUG_BYTES)

    def test_tracing_that_ends(self):
        """Ours were put around others, which the program has put away meanwhile: that is said, and
        who comes next is right."""
        with Target("injected.py", "untraced") as target:
            _, profile = self.watch_step(target)
            self.assertTrue([note for note in profile["notes"] if "Python's allocators" in note])
            for _ in range(2):
                truth, profile = self.watch_step(target)
                self.check_step(profile, truth)
                self.assertFalse([note for note in profile["notes"] if "allocators" in note])

    def test_other_allocators(self):
        """Preloaded, and so in front of libc's."""
        names = ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2")
        found = [path for name in names for path in glob.glob("/usr/lib/*/" + name)]
        if harness.CURRENT.root or not found:
            self.skipTest("there is no other allocator")
        for path in found:
            with self.subTest(path):
                with Target("injected.py", "steps", env={"LD_PRELOAD": path}) as target:
                    truth, profile = self.watch_step(target)
                    self.check_step(profile, truth)

    def test_own_namespaces(self):
        """It has other numbers for itself, and sees other mounts."""
        with Target("injected.py", "steps",
                    prefix=("unshare", "--pid", "--mount-proc", "--fork")) as target:
            target.descend()
            truth, profile = self.watch_step(target)
            self.check_step(profile, truth)
            self.assertEqual([process["pid"] for process in profile["processes"]], [target.pid])

    def test_child_in_own_namespace(self):
        with Target("injected.py", "child",
                    prefix=("unshare", "--pid", "--mount-proc", "--fork")) as target:
            target.descend()
            truth, profile = self.watch_step(target)
            self.check_step(profile, truth)
            self.assertEqual([process["pid"] for process in profile["processes"]
                              if process["pid"] == truth["child"]], [])

    def test_tracemalloc(self):
        """It puts its own allocators around ours, and keeps them when we go."""
        with Target("injected.py", "traced") as target:
            for _ in range(3):
                truth, profile = self.watch_step(target)
                self.check_step(profile, truth)

    def test_off_and_on(self):
        with Target("injected.py", "steps") as target, self.attached(target, "--off") as run:
            run.await_listening(target.pid)
            step(target)
            run.tell("on", target.pid)
            truth = step(target)
            run.tell("stop", target.pid)
            run.end()
            self.check_step(run.profile(), truth)

    def test_child(self):
        with Target("injected.py", "child") as target:
            truth, profile = self.watch_step(target)
        self.check_step(profile, truth)

    def check_program_below(self, *begin):
        """It gets the shim by itself, and is let go with the others."""
        with Target("injected.py", "above", *begin) as target:
            with self.attached(target) as run:
                run.await_listening(target.pid)
                child = step(target)["child"]
                harness.until(lambda: has_ring(child), "a child that has the shim")
                run.status(target.pid)  # it answers when it is done with that
                truth = step(target)
                run.tell("stop", target.pid)
                run.end()
                profile = run.profile()
            self.check_step(profile, truth)
            self.assertNotIn(test_memory.WITHOUT_SHIM, profile["notes"])
            (row,) = [each for each in profile["processes"] if each["pid"] == child]
            self.assertGreater(row["peak_footprint_mb"] * test_memory.MIB, 0.9 * truth["size"])
            self.assertFalse(has_ring(child))
            step(target)

    def test_program_below(self):
        self.check_program_below()

    def test_program_below_from_the_beginning(self):
        self.check_program_below("early")

    def test_loaded_later(self):
        if harness.CURRENT.ask("__import__('importlib.util').util.find_spec('_sqlite3') is None"):
            self.skipTest("there is no sqlite3")
        with Target("injected.py", "late") as target:
            with self.attached(target) as run:
                run.await_listening(target.pid)
                step(target)
                harness.until(lambda: leads_to_shim(target.pid, "/libsqlite3"),
                              "a library that is hooked")
                truth = step(target)
                run.tell("stop", target.pid)
                run.end()
                profile = run.profile()
            line = self.lines_of(profile, "injected.py")[truth["line"]]
            self.assertGreater(line["allocated_mb"] * test_memory.MIB, truth["size"])
            self.assertFalse(leads_to_shim(target.pid, "/libsqlite3"))

    def test_asleep(self):
        with Target("injected.py", "asleep") as target:
            before = descriptors(target.pid)
            truth, profile = self.watch_step(target)
            self.check_step(profile, truth)
            self.check_left(target, before)


class Afterwards(InjectTest):
    def check_untouched(self, killed):
        """Text, import tables, CPython's allocators, protections: byte for byte."""
        with Target("injected.py", "steps") as target:
            target.wait_in(target.pid, "read")
            rows = mappings(target.pid)
            judged = [row for row in rows if not CHANGED.search(row[3]) and "r" in row[1]]
            before, stood = descriptors(target.pid), bytes_of(target.pid, judged)
            with self.attached(target) as run:
                run.await_listening(target.pid)
                self.assertNotEqual(bytes_of(target.pid, judged), stood)
                if killed:
                    run.process.kill()
                else:
                    run.tell("stop", target.pid)
                run.process.wait()
            if killed:
                self.attach_briefly(target)
            self.assertEqual(mappings(target.pid), rows)
            stands = bytes_of(target.pid, judged)
            self.assertEqual([key for key in stood if stood[key] != stands[key]], [])
            self.check_left(target, before)

    def test_untouched(self):
        self.check_untouched(killed=False)

    def test_untouched_after_a_kill(self):
        """Who comes next puts back what the one before had changed."""
        self.check_untouched(killed=True)

    def test_children(self):
        """Those that the target has forked are let go, too."""
        with Target("injected.py", "family") as target:
            rows = [row for row in mappings(target.pid) if not CHANGED.search(row[3])]
            tables = [row for row in rows if row[1].startswith("r--")]
            stood = bytes_of(target.pid, tables)
            with self.attached(target) as run:
                run.await_listening(target.pid)
                child = step(target)["child"]
                self.assertNotEqual(bytes_of(child, tables), stood)
                run.tell("stop", target.pid)
                run.end()
                profile = run.profile()
            self.assertEqual([note for note in profile["notes"] if "armed" in note], [])
            self.assertEqual(bytes_of(child, tables), stood)

    def test_stopped_meanwhile(self):
        """It is let go all the same, and stays stopped."""
        with Target("injected.py", "steps") as target:
            target.wait_in(target.pid, "read")
            tables = [row for row in mappings(target.pid)
                      if not CHANGED.search(row[3]) and row[1].startswith("r--")]
            stood = bytes_of(target.pid, tables)
            with self.attached(target) as run:
                run.await_listening(target.pid)
                os.kill(target.pid, signal.SIGSTOP)
                harness.until(target.is_stopped, "a stopped target")
                run.tell("stop", target.pid)
                run.end()
                self.assertEqual([note for note in run.profile()["notes"] if "armed" in note], [])
            harness.until(target.is_stopped, "a target that is stopped again")
            self.assertEqual(bytes_of(target.pid, tables), stood)
            target.go_on()

    def check_text(self, target):
        """No byte of it is other than in its file."""
        for row in mappings(target.pid):
            if "x" not in row[1]:
                continue
            (shown,) = bytes_of(target.pid, [row]).values()
            with open(row[3], "rb") as file:
                file.seek(int(row[2], 16))
                stored = file.read(len(shown))
            self.assertTrue(shown.startswith(stored), row)

    def test_text(self):
        with Target("injected.py", "steps") as target:
            self.attach_briefly(target)
            self.check_text(target)

    def attach_often(self, target):
        """After the first few times nothing is added any more."""
        before, times = descriptors(target.pid), AGAIN if harness.RELEASE in THOROUGH else FEW
        for _ in range(FEW):
            self.attach_briefly(target)
        count, resident = len(shim_mappings(target.pid)), resident_kb(target.pid)
        for _ in range(times - FEW):
            self.attach_briefly(target)
        self.assertEqual(len(shim_mappings(target.pid)), count)
        self.assertLess(resident_kb(target.pid) - resident, GROWTH_KB)
        self.check_left(target, before)

    def test_again_and_again(self):
        with Target("injected.py", "steps") as target:
            self.attach_often(target)
            truth, profile = self.watch_step(target)
            self.check_step(profile, truth)

    def test_another_version(self):
        """Its shim is loaded beside the one that an older profiler has left."""
        program = shutil.copy(harness.SCALENE_ATTACH, self.folder)
        with open(self.shim(), "rb") as file:
            shim = bytearray(file.read())
        build = shim.index(b"GNU\0", 0, 4096) + 4  # the note that tells one build from another
        shim[build] ^= 1
        with open(os.path.join(self.folder, os.path.basename(self.shim())), "wb") as file:
            file.write(shim)
        with Target("injected.py", "steps") as target:
            self.attach_briefly(target)
            one = len(shim_mappings(target.pid))
            for _ in range(2):
                self.attach_briefly(target, program=program)
                self.assertEqual(len(shim_mappings(target.pid)), 2 * one)
            truth, profile = self.watch_step(target)
            self.check_step(profile, truth)

    def test_storm(self):
        """Eight threads, whose sums are right at the end."""
        with Target("injected.py", "storm") as target:
            self.attach_often(target)

    def test_killed_at_each_call(self):
        """Of all that it asks of ptrace(), from the first thread that it looks at to the last that
        it lets go: the target has its own text, works, and can be attached to. Each release takes
        some of the calls, and other ones each time."""
        strace = shutil.which("strace")
        if not strace:
            self.skipTest("needs strace")
        at = 1 + random.randrange(CALLS_STEP)
        while True:
            kill = "inject=ptrace:signal=KILL:when=%d" % at
            with Target("injected.py", "steps") as target:
                answer = harness.run_attach(
                    "-q", "--memory", "-d", "0.05", "-o", self.output, "--pid", target.pid,
                    prefix=(strace, "-o", os.devnull, "-e", "trace=ptrace", "-e", kill))
                self.check_text(target)
                step(target)
                self.assertIn(answer.returncode, (0, harness.OWN_FAILURE, -signal.SIGKILL), kill)
                if answer.returncode in (0, harness.OWN_FAILURE):
                    break
                self.attach_briefly(target)
                self.check_no_files(target)
            at += CALLS_STEP
        self.assertGreater(at, CALLS_LEAST)

    def test_killed(self):
        """At any moment: the target goes on, and the next one attaches as if nothing had been."""
        chance = random.Random(harness.CURRENT.release)
        with Target("unharmed.py") as target:
            for _ in range(KILLS):
                process = harness.start_attach("-q", "--memory", "-o", self.output, "--pid",
                                               target.pid)
                time.sleep(chance.uniform(0, 0.4))  # not to wait, but to meet it somewhere
                process.send_signal(signal.SIGKILL)
                process.communicate()
                self.check_text(target)
            self.attach_briefly(target)
            self.check_no_files(target)

    def test_interrupted(self):
        """Ended by a signal while it injects, or soon after: it takes everything back."""
        chance = random.Random(harness.CURRENT.release)
        with Target("unharmed.py") as target:
            for _ in range(KILLS // 3):
                process = harness.start_attach("-q", "--memory", "-o", self.output, "--pid",
                                               target.pid, preexec_fn=profiler.be_a_job)
                time.sleep(chance.uniform(0.05, 0.3))  # not to wait, but to meet it somewhere
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=harness.PATIENCE_S)
            self.check_no_files(target)


class Refused(InjectTest):
    def attach(self, target):
        return harness.run_attach("-q", "--memory", "-d", "1", "-o", self.output, "--pid",
                                  target.pid)

    def test_stopped(self):
        with Target("injected.py", "steps") as target:
            os.kill(target.pid, signal.SIGSTOP)
            harness.until(target.is_stopped, "a stopped target")
            self.refuse(self.attach(target), harness.OWN_FAILURE, "is stopped")
            self.assertTrue(target.is_stopped())
            self.assertEqual(shim_mappings(target.pid), [])
            target.go_on()

    def test_two_profilers(self):
        """The second is told of the first, also where it cannot be steered from."""
        with Target("injected.py", "steps") as target, self.attached(target) as run:
            run.await_listening(target.pid)
            self.refuse(self.attach(target), harness.OWN_FAILURE, "another profiler, process %d"
                        % run.process.pid)
            truth = step(target)
            run.tell("stop", target.pid)
            run.end()
            self.check_step(run.profile(), truth)

    def test_filtered(self):
        """A filter that has nothing against it is no obstacle to those who may read it."""
        with Target("injected.py", "filtered") as target:
            if "error" in target.facts:
                self.skipTest("the kernel takes no filter: error %d" % target.facts["error"])
            if os.geteuid():
                self.refuse(self.attach(target), harness.OWN_FAILURE, "seccomp filter", "sudo")
            else:
                self.attach_briefly(target)

    def test_forbidden(self):
        """What would end it is not called."""
        memfd_create = {"x86_64": 319, "aarch64": 279}[platform.machine()]
        with Target("injected.py", "filtered", memfd_create) as target:
            if "error" in target.facts:
                self.skipTest("the kernel takes no filter: error %d" % target.facts["error"])
            self.refuse(self.attach(target), harness.OWN_FAILURE, "seccomp filter")
            self.assertEqual(shim_mappings(target.pid), [])

    def test_launched(self):
        """A program that has the shim from its start belongs to another profiler."""
        with Target("injected.py", "steps",
                    env={"LD_PRELOAD": harness.CURRENT.inner(self.shim())}) as target:
            if not any("libscalene_shim" in path for _, _, _, path in mappings(target.pid)):
                self.skipTest("its loader does not find the shim")
            self.refuse(self.attach(target), harness.OWN_FAILURE, "launched with the shim")


if __name__ == "__main__":
    harness.main()
