#!/usr/bin/env python3
"""What profiling costs beside austin and `py-spy --nonblocking`: each profiles the same program by
turns, some rounds, each time for S and for 3 S seconds. What the longer run needs more tells what a
second of profiling costs, without the start. SCALENE_ATTACH names ours; austin and py-spy are those
of PATH, or what pip puts into the cache folder once."""

import argparse
import collections
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "attach"))

import harness
from compare_dump import Unavailable, find_tool

SECONDS, ROUNDS = 5, 3

# name, sleeping threads, depth of the busy one (0: none), samples a second
SCENES = [
    ("busy", 0, 20, 1000),
    ("200 asleep", 200, 20, 100),
    ("1 asleep", 1, 0, 100),
    ("1000 asleep", 1000, 0, 100),
]
Run = collections.namedtuple("Run", "start_ms ms_a_second samples paused")
Once = collections.namedtuple("Once", "cpu_s samples paused")


def ours(*options):
    def command(pid, rate, seconds, output):
        return [harness.SCALENE_ATTACH, "--pid", pid, "--duration", seconds, "--rate", rate, "-q",
                "--output", output, *options]

    def samples(output):
        with open(output) as file:
            profile = json.load(file)
        sampling = profile["sampling"]
        return sampling["samples"], sampling["paused_s"] / profile["elapsed_time_sec"]

    return command, samples


def raw_samples(output):
    """Collapsed stacks, a count or a duration at the end of each line."""
    with open(output, errors="replace") as file:
        rows = [line.split() for line in file if re.search(r" \d+$", line)]
    return sum(int(row[-1]) for row in rows), None


def austin_samples(output):
    with open(output, errors="replace") as file:
        return sum(not line.startswith("#") for line in file if line.strip()), None


def tools():
    """Name: (command of pid, rate, seconds, output; samples and paused share of an output)."""
    found = {
        "ours": ours(),
        "ours, no pauses": ours("--nonblocking", "--no-native"),
    }
    try:
        austin = find_tool("austin", "austin-dist<4")  # 4 wants a newer C library than Debian 12's
        found["austin"] = (
            lambda pid, rate, seconds, output: [
                austin, "-i", "%dus" % (1000000 // rate), "-p", pid, "-x", seconds, "-o", output],
            austin_samples,
        )
    except Unavailable as reason:
        print(reason)
    try:
        py_spy = find_tool("py-spy", "py-spy")
        found["py-spy"] = (
            lambda pid, rate, seconds, output: [
                py_spy, "record", "--nonblocking", "-r", rate, "-d", seconds, "-p", pid, "-f",
                "raw", "-t", "-o", output],
            raw_samples,
        )
    except Unavailable as reason:
        print(reason)
    return found


def measure(tool, pid, rate, seconds):
    command, samples = tool
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "profile.json")
        words = [str(word) for word in command(pid, rate, seconds, output)]
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
        if status:
            raise AssertionError("%s: status %d" % (" ".join(words), status))
        count, paused = samples(output)
    return Once(usage.ru_utime + usage.ru_stime, count, paused)


def compare_lengths(tool, pid, rate, seconds):
    short = measure(tool, pid, rate, seconds)
    long = measure(tool, pid, rate, 3 * seconds)
    cost = (long.cpu_s - short.cpu_s) / (2 * seconds)
    return Run(1e3 * (short.cpu_s - cost * seconds), 1e3 * cost,
               (long.samples - short.samples) / (2 * seconds), long.paused)


def scene_rows(scene, python, seconds, rounds):
    """By tool: the median run."""
    name, sleepers, depth, rate = scene
    runs = collections.defaultdict(list)
    program = os.path.join(harness.PROGRAMS, "cost.py")
    with subprocess.Popen([python, program, str(sleepers), str(depth)], stdout=subprocess.PIPE,
                          preexec_fn=harness.allow_any_tracer) as target:
        target.stdout.readline()
        try:
            for _ in range(rounds):
                for tool, how in tools().items():
                    runs[tool].append(compare_lengths(how, target.pid, rate, seconds))
        finally:
            target.kill()
    return {tool: Run(*map(middle, zip(*found))) for tool, found in runs.items()}


def middle(values):
    return None if None in values else statistics.median(values)


def verdicts(scenes):
    """What is wanted, as (words, found, most)."""
    def ratio(scene, peer, other="ours"):
        rows = scenes[scene]
        return rows[other].ms_a_second / rows[peer].ms_a_second if peer in rows else None

    def best(scene):
        peers = [row.ms_a_second for tool, row in scenes[scene].items() if "ours" not in tool]
        return scenes[scene]["ours"].ms_a_second / min(peers) if peers else None

    asleep = scenes["1000 asleep"]["ours"].ms_a_second / scenes["1 asleep"]["ours"].ms_a_second
    paused = max(rows["ours"].paused for rows in scenes.values())
    return [
        ("busy, of austin's CPU", ratio("busy", "austin"), 0.6),
        ("busy, no pauses, of austin's CPU", ratio("busy", "austin", "ours, no pauses"), 0.6),
        ("busy, of py-spy's CPU", ratio("busy", "py-spy"), 0.2),
        ("200 asleep, of the best peer's CPU", best("200 asleep"), 0.5),
        ("1000 asleep, of one asleep", asleep, 3),
        ("longest share of pauses", paused, 0.01),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=SECONDS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    print("%-12s %-16s %9s %9s %10s %12s %8s"
          % ("scene", "tool", "start ms", "cpu ms/s", "samples/s", "us a sample", "paused"))
    scenes = {}
    for scene in SCENES:
        rows = scenes[scene[0]] = scene_rows(scene, options.python, options.seconds, options.rounds)
        for tool, run in rows.items():
            print("%-12s %-16s %9.1f %9.2f %10.0f %12.1f %8s"
                  % (scene[0], tool, run.start_ms, run.ms_a_second, run.samples,
                     1e3 * run.ms_a_second / max(1, run.samples),
                     "" if run.paused is None else "%.2f %%" % (100 * run.paused)),
                  flush=True)
    held = True
    for words, found, most in verdicts(scenes):
        holds = found is not None and found <= most
        held = held and holds
        print("%-36s %6s, at most %-5g %s" % (
            words, "?" if found is None else "%.3f" % found, most, "held" if holds else "NOT HELD"))
    return not held


if __name__ == "__main__":
    sys.exit(main())
