"""The shim and what it writes: the events of programs that know what they allocate, as ring_dump
reads them. What a profile makes of them is another test's."""

import collections
import glob
import json
import math
import mmap
import os
import subprocess
import tempfile

import harness
from harness import PROGRAMS

LIBRARY = os.path.join(os.path.dirname(harness.SCALENE_ATTACH), "libscalene_shim.so")
RING_DUMP = os.path.join(os.environ.get("SCALENE_TEST_PROGRAMS", "."), "ring_dump")
PROGRAM = "shim_cases.py"
WINDOW, COPY_WINDOW = 10000, 1 << 20
DOUBT = 5  # standard deviations
SLACK = 0.03  # what allocators round, and what the interpreter needs beside
UNTOUCHED = 5 << 20
ALLOCATORS = [path for name in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2")
              for path in glob.glob("/usr/lib/*/" + name)]
QUIET = {"TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD": "0"}  # of what it refuses
LOOKS = 3  # where the ring was full, because others kept us from reading it

NATIVE = {"native_blocks", "native_growing", "mapped", "untouched"}
FREED = NATIVE | {"dropped_bytes", "threaded", "in_child", "in_program"}

Event = collections.namedtuple("Event", "pid tid change block size weight python frames")


def read_events(path):
    """The events, and how many records were lost."""
    events = []
    with open(path, encoding="utf-8") as file:
        *lines, last = file.read().splitlines()
    for line in lines:
        _, pid, tid, change, block, size, weight, kind, *rest = line.split("\t")
        frames = list(zip(map(int, rest[::3]), rest[1::3], rest[2::3]))
        events.append(Event(int(pid), int(tid), change, int(block), int(size), float(weight),
                            kind == "python", frames))
    word, _, lost, *_ = last.split("\t")
    assert word == "lost"
    return events, int(lost)


def function_of(event):
    """The innermost of the program's own functions, of which until 3.11 a comprehension is one."""
    for _, name, file in event.frames:
        if os.path.basename(file) == PROGRAM and not name.endswith("<listcomp>"):
            return name
    return None


def has_mimalloc():
    return bool(int(harness.CURRENT.config("WITH_MIMALLOC") or 0))


class Account:
    """Per function and whether Python's allocators were asked, by the weights of its events:
    allocated, and what of it was never freed; and copied."""

    def __init__(self, events):
        self.allocated, self.live, self.copied = (collections.Counter() for _ in range(3))
        self.places = collections.defaultdict(set)  # pid, tid
        self.blocks = {}
        for event in events:
            getattr(self, "add_" + event.change)(event)

    def add_emptied(self, event):
        """After fork, and exec: the process has none of these."""
        for pid, block in list(self.blocks):
            if pid == event.pid:
                self.add_freed(Event(pid, None, None, block, None, None, None, None))

    def add_allocated(self, event):
        name = function_of(event), event.python
        self.allocated[name] += event.weight
        self.live[name] += event.weight
        self.places[name[0]].add((event.pid, event.tid))
        parts = self.blocks.setdefault((event.pid, event.block), [])
        parts.append((name, event.size, event.weight))

    def add_freed(self, event):
        for name, _, weight in self.blocks.pop((event.pid, event.block)):
            self.live[name] -= weight

    def add_resized(self, event):
        parts = self.blocks[event.pid, event.block]
        told = sum(size for _, size, _ in parts)
        share = event.size / told if told else 0  # nothing was left before
        for name, _, weight in parts:
            self.live[name] -= weight * (1 - share)
        self.blocks[event.pid, event.block] = [
            (name, size * share, weight * share) for name, size, weight in parts]

    def add_copied(self, event):
        self.copied[function_of(event)] += event.weight


class ShimTest(harness.AttachTest):
    def dump(self, *command, env=None, window=WINDOW, copy_window=COPY_WINDOW):
        """What it prints, and its events."""
        for _ in range(LOOKS):
            with tempfile.NamedTemporaryFile() as output:
                answer = subprocess.run(
                    [RING_DUMP, LIBRARY, str(window), str(copy_window), output.name, *command],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=harness.PATIENCE_S,
                    env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1", PYTHONWARNINGS="ignore",
                             **(env or {})))
                self.assertEqual((answer.returncode, answer.stderr), (0, b""))
                events, lost = read_events(output.name)
            if not lost:
                break
        self.assertEqual(lost, 0)
        return answer.stdout.decode(), events

    def run_cases(self, env=None):
        inner = harness.CURRENT.inner(os.path.join(PROGRAMS, PROGRAM))
        said, events = self.dump(*harness.CURRENT.command(inner), env=env)
        facts = {}
        for line in said.splitlines():
            facts.update(json.loads(line))
        return facts, Account(events)

    def check_sum(self, found, fact, name, size=None, window=WINDOW):
        """Within the sampler's own error."""
        size = fact["size"] if size is None else size
        chance = -math.expm1(-fact["size"] / fact["blocks"] / window)
        doubt = DOUBT * math.sqrt((1 - chance) / chance / fact["blocks"]) + SLACK
        self.assertAlmostEqual(found, size, delta=doubt * size + 2 * window, msg=name)

    def check_cases(self, facts, account):
        copied = facts.pop("copied")
        self.check_sum(account.copied["copied"], copied, "copied", window=COPY_WINDOW)
        for name, fact in facts.items():
            key = name, name not in NATIVE
            self.check_sum(account.allocated[key], fact, name)
            left = 0 if name in FREED else fact.get("left", fact["size"])
            self.check_sum(account.live[key], fact, name, size=left)
            self.assertLess(fact.get("grown", 0), UNTOUCHED)
        main = facts["kept_bytes"]["pid"]
        self.assertEqual(account.places["kept_bytes"], {(main, main)})
        self.assertEqual(account.places["threaded"], {(main, facts["threaded"]["tid"])})
        for name in ("in_child", "in_program"):
            self.assertNotEqual(facts[name]["pid"], main)
            self.assertEqual({pid for pid, _ in account.places[name]}, {facts[name]["pid"]})


class Cases(ShimTest):
    def test_default(self):
        self.check_cases(*self.run_cases())

    def test_other_allocators(self):
        """PYTHONMALLOC and -X dev set CPython's allocators after the shim has."""
        names = ["mimalloc"][:has_mimalloc()]
        for name in names + ([] if harness.CURRENT.free_threaded else ["malloc", "pymalloc"]):
            with self.subTest(name):
                self.check_cases(*self.run_cases({"PYTHONMALLOC": name}))

    def test_debug_allocators(self):
        """They ask for some words more with each block, and abort where a free is wrong."""
        names = ["debug", *["mimalloc_debug"][:has_mimalloc()]]
        for environment in [*[{"PYTHONMALLOC": name} for name in names], {"PYTHONDEVMODE": "1"}]:
            with self.subTest(environment):
                self.check_cases(*self.run_cases(environment))


class Surroundings(ShimTest):
    def test_line(self):
        """The line of the call, in a frame whose file is the program's."""
        code = "def held():\n    return [\n        bytes(5000) for _ in range(3000)]\nx = held()"
        _, events = self.dump(*harness.CURRENT.command("-c", code))
        places = collections.Counter()
        for event in events:
            if event.change == "allocated" and event.frames:
                line, _, file = event.frames[0]
                places[line, file] += event.weight
        (place, weight), *_ = places.most_common(1)
        self.assertEqual(place, (3, "<string>"))
        self.assertAlmostEqual(weight / (3000 * 5033), 1, delta=0.15)

    def test_no_python(self):
        """Another program's blocks are native, and without frames."""
        said, events = self.dump("sh", "-c", "seq 100000 | sort -n | tail -1")
        self.assertEqual(said, "100000\n")
        allocated = [event for event in events if event.change == "allocated"]
        self.assertTrue(allocated)
        self.assertFalse([event for event in allocated if event.python or event.frames])

    def test_without_ring(self):
        """Alone, the library is as good as not there."""
        words = harness.CURRENT.command("-c", "print(sum(map(len, [bytes(1000)] * 1000)))")
        answer = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=dict(os.environ, LD_PRELOAD=LIBRARY))
        if not harness.CURRENT.root:  # whose loader does not find it
            self.assertEqual(answer.stderr, b"")
        self.assertEqual((answer.returncode, answer.stdout), (0, b"1000000\n"))

    def built(self, name, *words, suffix=".c"):
        """A program of C or C++, in a folder of its own."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        program = os.path.join(folder.name, name)
        harness.build_c(self, program, name + suffix, *words)
        return program

    def test_own_allocator(self):
        """Linked into the program: what it lacks and we have is passed on to it, uncounted."""
        said, events = self.dump(self.built("own_allocator"))
        self.assertEqual(said, "kept\n")
        self.assertEqual([event for event in events if event.size < UNTOUCHED and
                          event.change == "allocated"], [])

    def test_own_allocator_of_a_host(self):
        """What CPython's allocators are asked for is seen above it, and nothing else."""
        part = self.built("own_allocator", "-c", "-Dmain=own_main")
        allocated = self.allocated_late(self.built("late_host", part, "-ldl"))
        self.assertFalse([event for event in allocated if not event.python and
                          event.size % mmap.PAGESIZE])  # what is mapped is another matter

    def allocated_late(self, host):
        """By a program that comes to CPython long after its start."""
        library = harness.CURRENT.shared_library or self.library_beside()
        if harness.CURRENT.root or not library:
            self.skipTest("there is no libpython that a program of this system could load")
        source = "def held():\n    return [bytes(5000) for _ in range(3000)]\nx = held()"
        _, events = self.dump(host, library, source,
                              env={"PYTHONHOME": harness.CURRENT.ask("sys.prefix")})
        allocated = [event for event in events if event.change == "allocated"]
        held = sum(event.weight for event in allocated if event.python and
                   any("held" in frame[1] for frame in event.frames))
        self.assertAlmostEqual(held / (3000 * 5033), 1, delta=0.15)
        return allocated

    def check_half_freed(self, said, events, what):
        """Of 4000 blocks. Who is told nothing of frames has them all."""
        account = Account(events)
        fact = {"size": int(said), "blocks": 4000}
        for kept, size in ((account.allocated, int(said)), (account.live, int(said) // 2)):
            self.check_sum(kept[None, False], fact, what, size=size)

    def test_linked_allocators(self):
        """A library that the program names before libc."""
        for library in ALLOCATORS:
            with self.subTest(library):
                program = self.built("linked_allocator", "-Wl,--no-as-needed", library)
                self.check_half_freed(*self.dump(program), library)

    def built_operators(self, *words):
        return self.built("operators", "-std=c++17", "-fsized-deallocation", *words, suffix=".cpp")

    def test_operators(self):
        """C++'s new and delete, which not all allocators have call malloc; counted once."""
        for path in ["", *ALLOCATORS]:
            with self.subTest(path):
                program = self.built_operators("-Wl,--no-as-needed", *[path][:bool(path)])
                said, events = self.dump(program, *["no refusals"][:"mimalloc" in path], env=QUIET)
                self.check_half_freed(said, events, path)

    def test_operators_loaded_late(self):
        """By a library of a program that has none of C++ itself, with an allocator or without."""
        if harness.CURRENT.root:
            self.skipTest("what is compiled here may not run in %s" % harness.CURRENT.root)
        library = self.built_operators("-shared", "-fPIC")
        code = "import ctypes, sys\nprint(ctypes.CDLL(%r).operators_pass('mimalloc' not in %r))"
        for path in ["", *ALLOCATORS]:
            with self.subTest(path):
                said, events = self.dump(*harness.CURRENT.command("-c", code % (library, path)),
                                         env=dict(QUIET, LD_PRELOAD=path))
                own = [event._replace(frames=[] if event.frames and event.frames[0][::2] ==
                                      (2, "<string>") else [(0, "else", PROGRAM)])
                       for event in events]
                self.check_half_freed(said, own, path)

    def test_loaded_late(self):
        self.allocated_late(self.built("late_host", "-ldl"))

    def library_beside(self):
        found = glob.glob(os.path.join(harness.CURRENT.config("LIBDIR") or "",
                                       harness.CURRENT.config("INSTSONAME") or "none"))
        return found[0] if found and ".so" in found[0] else None

    def test_no_copies(self):
        """What is allocated is copied into the ring, and none of that is the program's."""
        code = "def held():\n    for _ in range(40000):\n        bytes(1000)\nheld()"
        _, events = self.dump(*harness.CURRENT.command("-c", code), copy_window=4096)
        copied = sum(event.weight for event in events if event.change == "copied" and
                     any("held" in frame[1] for frame in event.frames))
        self.assertLess(copied, 40000 * 1000 / 50)

    def test_overlapping_copies(self):
        """What ctypes calls is ours; few bytes are copied by ours alone."""
        code = ("import ctypes\n"
                "text = bytes(range(96))\n"
                "for size in range(36):\n"
                "    for shift in range(-20, 21):\n"
                "        room = ctypes.create_string_buffer(text, 96)\n"
                "        at = ctypes.addressof(room) + 20\n"
                "        assert ctypes.memmove(at + shift, at, size) == at + shift\n"
                "        wanted = bytearray(text)\n"
                "        wanted[20 + shift:20 + shift + size] = text[20:20 + size]\n"
                "        assert room.raw == wanted, (size, shift)\n"
                "print('right')")
        said, _ = self.dump(*harness.CURRENT.command("-c", code))
        self.assertEqual(said, "right\n")

    def test_small_blocks(self):
        """Each that was sampled is heard of when it is freed: new, zeroed, and grown ones. Python's
        own count of blocks stays right."""
        code = ("import sys\n"
                "def small():\n    for _ in range(60000):\n        bytes(100)\n"
                "def zeroed():\n    for _ in range(60000):\n        bytearray(100)\n"
                "def grown():\n    for _ in range(9000):\n        kept = []\n"
                "        for _ in range(40):\n            kept.append(None)\n"
                "def all():\n    small()\n    zeroed()\n    grown()\n"
                "all()\nbefore = sys.getallocatedblocks()\nall()\n"
                "print(abs(sys.getallocatedblocks() - before) < 10)")
        said, events = self.dump(*harness.CURRENT.command("-c", code))
        self.assertEqual(said, "True\n")
        freed = {(event.pid, event.block) for event in events if event.change == "freed"}
        for name in ("small", "zeroed", "grown"):
            blocks = {(event.pid, event.block) for event in events
                      if event.change == "allocated" and event.python and
                      any(frame[1] == name for frame in event.frames)}
            self.assertGreater(len(blocks), 100, name)
            self.assertFalse(blocks - freed, name)

    def test_tracemalloc(self):
        """It puts its own allocators around ours, and takes them away again."""
        code = ("import tracemalloc\ntracemalloc.start()\na = [bytes(900) for _ in range(9000)]\n"
                "tracemalloc.stop()\nb = [bytes(900) for _ in range(9000)]\nprint(len(a + b))")
        said, events = self.dump(*harness.CURRENT.command("-c", code))
        self.assertEqual(said, "18000\n")
        for line in (3, 5):
            weight = sum(event.weight for event in events if event.change == "allocated" and
                         event.python and any(frame[0] == line and frame[2] == "<string>"
                                              for frame in event.frames))
            self.assertGreater(weight, 9000 * 933 * 0.8)


if __name__ == "__main__":
    harness.main()
