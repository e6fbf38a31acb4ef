#!/usr/bin/env python3
"""What the shim costs the programs that it is loaded into: each runs bare and with the shim by
turns, and the CPU time (user and system) that it takes by its own clock is compared: the least of
each, which other work on the machine disturbs least, and the median of the ratios of neighbours. So
does each with hooks of the object allocator that do nothing, the least that any could cost
(`empty`; of an empty loop over integers that is most of it), and with --peers under Scalene and
memray, which pip puts into the cache folder once. SCALENE_ATTACH names the built program,
SCALENE_TEST_PROGRAMS the folder of ring_dump, which reads the ring meanwhile; arguments are
interpreters. Ends with status 1 where a ratio is larger than is wanted."""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

WINDOW = 524287
COPY_WINDOW = 7 << 20  # Scalene's own
ROUNDS = 15

# name, the largest ratio that is wanted, program
PROGRAMS = [
    ("objects", 1.25, "for _ in range(80):\n [(i, str(i), {i: i}) for i in range(20000)]"),
    ("bytes", 1.25, "for _ in range(60):\n [bytes(300) for _ in range(30000)]"),
    ("rebound", 1.25, "for i in range(8000000):\n x = bytes(200)"),
    ("strings", 1.25, "s = 'word ' * 2000\nfor _ in range(12000):\n '-'.join(s.split()).upper()"),
    ("growing", 1.25, "for _ in range(100):\n l = []\n b = bytearray()\n"
                      " for i in range(60000):\n  l.append(b); b += b'four'"),
    ("large", 1.25, "for _ in range(12000):\n a = bytearray(200000); b = bytes(a)"),
    ("integers", 1.25, "def f(n):\n for i in range(n): pass\nf(20000000)"),
    ("nothing", 1.01, "from itertools import repeat\ndef f(n):\n s, t = None, True\n"
                      " for _ in repeat(None, n):\n  s, t = t, s\nf(30000000)"),
]


def telling(program):
    """The program tells its own time: its interpreter's start and its profiler's are others'."""
    return ("import sys, time\nbegin = time.process_time()\n%s\n"
            "took = time.process_time() - begin\n"
            "with open(sys.argv[1], 'w') as file: file.write(repr(took))\n" % program)


def own_cpu(command, folder, **environment):
    told = os.path.join(folder, "told")
    subprocess.run([*command, told], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True,
                   cwd=folder, env=dict(os.environ, **environment))
    with open(told) as file:
        return float(file.read())


def build_hooks(folder):
    bench = os.path.dirname(os.path.abspath(__file__))
    source = os.path.join(bench, "preload", "empty_hooks.c")
    library = os.path.join(folder, "empty_hooks.so")
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", "-std=gnu11", "-I",
                    os.path.join(bench, "..", ".."), "-o", library, source], check=True)
    return library


def peers_of(python):
    """Name: the words in front of a program's file."""
    version = subprocess.run([python, "-c", "import sys; print(sys.hexversion)"], check=True,
                             stdout=subprocess.PIPE).stdout.decode().strip()
    cache = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    folder = os.path.join(cache, "scalene-attach", "peers-" + version)
    venv = os.path.join(folder, "bin", "python")
    if not os.path.exists(os.path.join(folder, "bin", "memray")):
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([venv, "-m", "pip", "install", "-q", "scalene==2.4.0", "memray"], check=True)
    memray = [venv, "-m", "memray", "run", "-q", "-f", "-o", os.devnull]
    return {
        "scalene": [venv, "-m", "scalene", "run"],
        "memray": memray,
        "memray, Python's": [*memray, "--trace-python-allocators"],
    }


def ways_of(python, folder, hooks, with_peers):
    """Name: the words in front of a program's file, and what is set for them."""
    built = os.path.dirname(os.environ["SCALENE_ATTACH"])
    dump = [os.path.join(os.environ["SCALENE_TEST_PROGRAMS"], "ring_dump"),
            os.path.join(built, "libscalene_shim.so"), str(WINDOW), str(COPY_WINDOW),
            os.path.join(folder, "dumped")]
    bare = [python, "-I", "-S"]
    ways = {"bare": (bare, {}), "shim": (dump + bare, {}), "empty": (bare, {"LD_PRELOAD": hooks})}
    if with_peers:
        ways.update({name: (words, {}) for name, words in peers_of(python).items()})
    return ways


def measure(ways, program, rounds, folder):
    """Seconds by way, a round each."""
    path = os.path.join(folder, "program.py")
    with open(path, "w") as file:
        file.write(telling(program))
    taken = {name: [] for name in ways}
    for _ in range(rounds):
        for name, (words, environment) in ways.items():
            taken[name].append(own_cpu([*words, path], folder, **environment))
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", help="the program of this name")
    parser.add_argument("--peers", action="store_true", help="Scalene and memray as well")
    parser.add_argument("pythons", nargs="+")
    options = parser.parse_args()
    held = True
    with tempfile.TemporaryDirectory() as folder:
        hooks = build_hooks(folder)
        for python in options.pythons:
            ways = ways_of(python, folder, hooks, options.peers)
            others = [name for name in ways if name not in ("bare", "shim")]
            print("%-10s %-9s %7s %7s %7s %7s" % (
                "python", "program", "bare s", "wanted", "shim", "median") +
                "".join("%*s" % (len(name) + 2, name) for name in others))
            for name, wanted, program in PROGRAMS:
                if options.only not in (None, name):
                    continue
                taken = measure(ways, program, options.rounds, folder)
                ratio = {way: min(times) / min(taken["bare"]) for way, times in taken.items()}
                median = statistics.median(b / a for a, b in zip(taken["bare"], taken["shim"]))
                held = held and ratio["shim"] <= wanted
                print("%-10s %-9s %7.3f %7.2f %7.3f %7.3f" % (
                    os.path.basename(python), name, min(taken["bare"]), wanted, ratio["shim"],
                    median) + "".join("%*.3f" % (len(way) + 2, ratio[way]) for way in others),
                    flush=True)
    return not held


if __name__ == "__main__":
    sys.exit(main())
