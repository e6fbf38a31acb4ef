#!/usr/bin/env python3
"""`go tool pprof` reads what is for it: the sums of every kind of sample, by thread and by state,
and names of functions. Go is a package."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

from exports import for_each_profile, run, skip

KINDS = ("samples", "cpu", "idle", "wait", "wall", "alloc_space", "inuse_space")


def pprof(*words):
    environment = {**os.environ, "PPROF_TMPDIR": tempfile.gettempdir()}
    return run(shutil.which("go"), "tool", "pprof", *words, env=environment).decode()


def raw_sums(path):
    """{kind: sum} of the rows of values, "1 2 0: 5 4 1"."""
    text = pprof("-raw", path)
    head, rest = text.split("Samples:\n", 1)
    kinds = [word.split("/")[0] for word in rest.split("\n", 1)[0].split()]
    rows = re.findall(r"^ +(\d[\d ]*):", rest.split("\nLocations\n")[0], re.MULTILINE)
    values = [[int(number) for number in row.split()] for row in rows]
    assert "PeriodType:" in head and values
    return {kind: sum(row[i] for row in values) for i, kind in enumerate(kinds)}


def top(path, *words):
    """Nanoseconds that the view accounts for."""
    text = pprof("-top", "-unit=ns", "-nodefraction=0", *words, path)
    return int(re.search(r"of ([\d.]+)ns total", text)[1]), text


def check(export):
    sums = raw_sums(export.path)
    assert list(sums) == list(KINDS)[:len(sums)], sums
    assert sums["samples"] == export.sum("hits")
    for kind in ("cpu", "idle", "wait"):
        assert sums[kind] == 1000 * export.sum(kind), kind
    assert sums["wall"] == sums["cpu"] + sums["wait"]
    assert abs(sums.get("alloc_space", 0) - export.bytes()) <= len(sums)
    assert abs(sums.get("inuse_space", 0) - export.live()) <= len(sums)
    total, text = top(export.path, "-sample_index=cpu")
    assert total == sums["cpu"]
    shown = text[text.index("cum%"):]
    assert all(name in shown for name in export.functions("py")), (export.functions(), shown)
    waits = {thread: of["wait"] for thread, of in export.threads().items() if of["wait"]}
    for pid, tid in list(waits)[:1]:
        _, text = top(export.path, "-sample_index=wait", f"-tagfocus=pid={pid}:{pid}",
                      f"-tagfocus=tid={tid}:{tid}")
        shown = int(re.search(r"accounting for ([\d.]+)ns", text)[1])
        assert shown == 1000 * waits[pid, tid], (shown, waits, text)


def main():
    go = shutil.which("go")
    if not go or subprocess.run([go, "tool", "pprof", "-h"], capture_output=True,
                                check=False).returncode not in (0, 2):
        skip("no Go here; its `go tool pprof` reads what is exported for it")
    return for_each_profile(".pb.gz", check)


if __name__ == "__main__":
    sys.exit(main())
