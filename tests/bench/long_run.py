#!/usr/bin/env python3
"""Whether the profiler's memory stays small and flat in a run of many minutes, and its profile
small, too: a program that works, one that makes and ends threads all the time, one that does so
with processes, and one that does nothing but allocate, with their memory profiled, at once.
SCALENE_ATTACH names ours. Ends with status 1 where it does not hold."""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs")
FLAT = 1.1  # the last half's peak, of the peak of the quarter before it
MB = 1 << 10  # in KB

# What the profiler may take at most, and its profile. The storm's has as many stacks as a profile
# may have, 10,000 of looks and 10,000 of memory, each up to thirty frames deep; a profile of any
# has 100,000 changes of who ran at most.
MOST_KB = {
    "busy_work.py": (20 * MB, 32 * MB),
    "many_threads.py": (20 * MB, 32 * MB),
    "many_processes.py": (20 * MB, 32 * MB),
    "stack_storm.py": (32 * MB, 100 * MB),
}


def memory_kb(pid, key="VmRSS"):
    with open("/proc/%d/status" % pid) as file:
        found = re.search(key + r":\s*(\d+)", file.read())
    return int(found.group(1)) if found else 0  # it has ended


def output_of(folder, program):
    return os.path.join(folder, program + ".json")


def start(folder, program, seconds):
    words = [os.environ["SCALENE_ATTACH"], "-q", "-o", output_of(folder, program), "--",
             sys.executable, os.path.join(PROGRAMS, program), str(seconds)]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL)


def judge(program, seen, peak, profile):
    quarter = len(seen) // 4
    before, last = max(seen[quarter:2 * quarter]), max(seen[2 * quarter:])
    most, profile_most = MOST_KB[program]
    holds = peak < most and last <= FLAT * before and 0 < profile < profile_most
    sizes = [size / 1024 for size in (seen[0], before, last, peak, profile)]
    print("%-20s %s: %.1f MB at first, %.1f in the second quarter, %.1f at most since; %.1f when "
          "all was written, a profile of %.2f" % (program, "held" if holds else "NOT HELD", *sizes))
    return holds


def wait(runs):
    """The most memory that each ever had, while it wrote its profile, too: of its own, which its
    usage as a child would not tell from the program's."""
    peaks = dict.fromkeys(runs, 0)
    while any(run.poll() is None for run in runs.values()):
        for name, run in runs.items():
            if run.returncode is None:
                peaks[name] = max(peaks[name], memory_kb(run.pid, "VmHWM"))
        time.sleep(0.002)
    return peaks


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("programs", nargs="*", default=list(MOST_KB), help=", ".join(MOST_KB))
    options = parser.parse_args()
    seconds = 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder:
        runs = {name: start(folder, name, seconds) for name in options.programs}
        seen = {name: [] for name in runs}
        end = time.monotonic() + seconds - 5
        while time.monotonic() < end:
            time.sleep(min(seconds / 120, max(end - time.monotonic(), 0)))
            for name, run in runs.items():
                seen[name].append(memory_kb(run.pid))
        peaks = wait(runs)
        profiles = {name: os.path.getsize(output_of(folder, name)) / 1024 for name in runs}
    held = [judge(name, sizes, peaks[name], profiles[name]) for name, sizes in seen.items()]
    return not all(held) or any(run.returncode for run in runs.values())


if __name__ == "__main__":
    sys.exit(main())
