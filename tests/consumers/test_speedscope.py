#!/usr/bin/env python3
"""speedscope's own importer reads its own format, collapsed stacks and pprof's profile, and what it
then shows is what the profile has: threads, sums, functions."""

import json
import pathlib
import sys

from exports import find_node, find_tool, for_each_profile, run

SCRIPT = pathlib.Path(__file__).with_name("speedscope_import.js")


def read(path):
    (bundle,) = find_tool("speedscope/dist/release").glob("speedscope-*.js")
    (group,) = json.loads(run(find_node(), SCRIPT, bundle, path))
    assert group, path
    return group["profiles"]


def assert_near(got, want, near):
    assert abs(got - want) <= near, (got, want)


KINDS = ("CPU", "waiting", "wall")


def thread_weights(export, kind):
    """{name: seconds} of the threads that have any, as the profile tells."""
    parts = {"CPU": ("cpu",), "waiting": ("wait",), "wall": ("cpu", "wait")}[kind]
    sums = {f"process {pid}, thread {tid}": sum(thread[part] for part in parts) / 1e6
            for (pid, tid), thread in export.threads().items()}
    return {name: seconds for name, seconds in sums.items() if seconds}


def check_speedscope(export):
    profiles = read(export.path)
    seen = {kind: {} for kind in KINDS}
    memory = {}
    for profile in profiles:
        title, _, kind = profile["name"].rpartition(", ")
        if profile["unit"] == "bytes":
            memory[profile["name"]] = profile["weight"]
            continue
        process, thread = title.split(", ", 1)
        assert profile["unit"] == "seconds" and kind in KINDS, profile["name"]
        seen[kind][f"{process}, {' '.join(thread.split()[:2])}"] = profile["weight"]
    for kind in KINDS:
        wanted = thread_weights(export, kind)
        assert seen[kind].keys() == wanted.keys(), (kind, seen, wanted)
        for name, seconds in wanted.items():
            assert_near(seen[kind][name], seconds, 1e-7)
    totals = export.profile["totals"]
    cpu = sum(totals[f"cpu_{kind}_s"] for kind in ("python", "native", "kernel"))
    assert_near(sum(seen["CPU"].values()), cpu, 1e-5)
    assert profiles[0]["name"].endswith(", CPU"), profiles[0]["name"]
    stacks = len(export.profile["memory_stacks"])
    assert_near(memory.get("allocated memory", 0), export.bytes(), stacks)
    assert_near(memory.get("live memory", 0), export.live(), stacks)
    known = {name for profile in profiles for name in profile["functions"]}
    assert export.functions() <= known, export.functions() - known


def check_collapsed(export):
    (profile,) = read(export.path)
    assert profile["weight"] == export.sum("hits")
    assert export.functions() <= {name.split(" (")[0] for name in profile["functions"]}


def check_pprof(export):
    (profile,) = read(export.path)
    assert profile["unit"] == "nanoseconds"
    assert profile["weight"] == 1000 * export.sum("cpu")


def main():
    find_tool("speedscope/dist/release")
    find_node()
    for_each_profile(".speedscope.json", check_speedscope)
    for_each_profile(".collapsed", check_collapsed)
    return for_each_profile(".pb.gz", check_pprof)


if __name__ == "__main__":
    sys.exit(main())
