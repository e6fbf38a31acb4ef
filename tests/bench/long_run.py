#!/usr/bin/env python3
"""Whether the profiler's memory stays below 20 MB and flat in a run of many minutes, and its
profile small: a program that works, one that makes and ends threads all the time, one that does so
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
PROGRAM_NAMES = ("busy_work.py", "many_threads.py", "many_processes.py", "stack_storm.py")
MOST_KB, FLAT = 20 << 10, 1.1  # the last half's peak, of the peak of the quarter before it
PROFILE_MOST_KB = 64 << 10  # twice 10,000 stacks of that depth


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
    holds = peak < MOST_KB and last <= FLAT * before and 0 < profile < PROFILE_MOST_KB
    print("%-20s %s: %.1f MB at first, %.1f in the second quarter, %.1f at most since; %.1f when "
          "all was written, a profile of %.2f" % (program, "held" if holds else "NOT HELD",
                                                 *(size / 1024 for size in (seen[0], before, last,
                                                                            peak, profile))))
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
    parser.add_argument("programs", nargs="*", default=PROGRAM_NAMES, help="of tests/programs")
    options = parser.parse_args()
    seconds = 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder:
        runs = {name: start(folder, name, seconds) for name in options.programs}
        seen = {name: [] for name in runs}
        end = time.monotonic() + seconds - 5
        while time.monotonic() < end:
            time.sleep(seconds / 120)
            for name, run in runs.items():
                seen[name].append(memory_kb(run.pid))
        peaks = wait(runs)
        profiles = {name: os.path.getsize(output_of(folder, name)) / 1024 for name in runs}
    held = [judge(name, sizes, peaks[name], profiles[name]) for name, sizes in seen.items()]
    return not all(held) or any(run.returncode for run in runs.values())


if __name__ == "__main__":
    sys.exit(main())
