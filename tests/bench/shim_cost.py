#!/usr/bin/env python3
"""What the shim costs the programs that it is loaded into: each runs bare and with the shim by
turns, and the CPU time (user and system) of the runs is compared: the least of each, which other
work on the machine disturbs least, and the median of the ratios of neighbours. So does each with
hooks of the object allocator that do nothing, the least that any could cost (`empty`; of an empty
loop over integers that is most of it). SCALENE_ATTACH names
the built program, SCALENE_TEST_PROGRAMS the folder of ring_dump, which reads the ring meanwhile;
arguments are interpreters. Ends with status 1 where a ratio is larger than is wanted."""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

WINDOW = 524287
COPY_WINDOW = 7 << 20  # Scalene's own

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


def telling(python, program):
    """The program tells its own time: ring_dump's is another's."""
    return [python, "-I", "-S", "-c", program + "\nimport time, sys\n"
            "sys.stderr.write('%f' % time.process_time())"]


def own_cpu(command, **environment):
    answer = subprocess.run(command, stderr=subprocess.PIPE, check=True,
                            env=dict(os.environ, **environment))
    return float(answer.stderr)


def build_hooks(folder):
    bench = os.path.dirname(os.path.abspath(__file__))
    source = os.path.join(bench, "preload", "empty_hooks.c")
    library = os.path.join(folder, "empty_hooks.so")
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", "-std=gnu11", "-I",
                    os.path.join(bench, "..", ".."), "-o", library, source], check=True)
    return library


def measure(python, program, rounds, hooks):
    folder = os.path.dirname(os.environ["SCALENE_ATTACH"])
    dump = [os.path.join(os.environ["SCALENE_TEST_PROGRAMS"], "ring_dump"),
            os.path.join(folder, "libscalene_shim.so"), str(WINDOW), str(COPY_WINDOW)]
    command = telling(python, program)
    without, empty, with_shim = [], [], []
    with tempfile.NamedTemporaryFile() as output:
        for _ in range(rounds):
            without.append(own_cpu(command))
            empty.append(own_cpu(command, LD_PRELOAD=hooks))
            with_shim.append(own_cpu([*dump, output.name, *command]))
    ratios = [b / a for a, b in zip(without, with_shim)]
    return min(without), min(empty), min(with_shim), statistics.median(ratios)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", help="the program of this name")
    parser.add_argument("pythons", nargs="+")
    options = parser.parse_args()
    print("%-10s %-9s %8s %8s %7s %7s %7s %7s" % (
        "python", "program", "bare s", "shim s", "ratio", "median", "empty", "wanted"))
    held = True
    with tempfile.TemporaryDirectory() as folder:
        hooks = build_hooks(folder)
        for python in options.pythons:
            for name, wanted, program in PROGRAMS:
                if options.only not in (None, name):
                    continue
                before, empty, after, ratio = measure(python, program, options.rounds, hooks)
                held = held and after <= wanted * before
                print("%-10s %-9s %8.3f %8.3f %7.3f %7.3f %7.3f %7.2f" % (
                    os.path.basename(python), name, before, after, after / before, ratio,
                    empty / before, wanted), flush=True)
    return not held


if __name__ == "__main__":
    sys.exit(main())
