#!/usr/bin/env python3
"""A profile of a program that was launched here, with memory, threads and children, to Scalene
itself. 77 says: it is not here."""

import os
import pathlib
import subprocess
import sys
import tempfile

import scalene_view

PROGRAM = """
import multiprocessing
import threading
import time


def hold(seconds):
    kept, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(kept) < 300:
        kept.append(bytearray(100000))
    return bytes(kept[0])


def rest(seconds):
    time.sleep(seconds)


if __name__ == "__main__":
    threads = [threading.Thread(target=work, args=(0.2,)) for work in (rest, hold)]
    for thread in threads:
        thread.start()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(hold, [0.2] * 4)
    for thread in threads:
        thread.join()
    hold(0.2)
"""


def launch(folder):
    script, output = folder / "family.py", folder / "family.json"
    script.write_text(PROGRAM)
    words = ["-q", "--max-overhead", "100", "-o", output, "--", sys.executable, script]
    done = subprocess.run([os.environ["SCALENE_ATTACH"], *words], capture_output=True, timeout=120)
    assert done.returncode == 0 and output.exists(), done
    return output


def main():
    if not scalene_view.is_here():
        return scalene_view.SKIPPED
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        profile = scalene_view.check(launch(folder))
        assert profile["memory"] and profile["max_footprint_mb"] > 25, profile["max_footprint_mb"]
        assert len(profile["processes"]) >= 3 and len(profile["threads"]) >= 5, profile["threads"]
        assert profile["args"] == [str(folder / "family.py")], profile["args"]
        functions = {each["line"] for each in profile["files"][profile["program"]]["functions"]}
        assert {"hold", "rest"} <= functions, functions
    return 0


if __name__ == "__main__":
    sys.exit(main())
