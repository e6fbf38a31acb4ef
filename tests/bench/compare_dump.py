#!/usr/bin/env python3
"""How long `scalene-attach dump` takes on a target that nobody has looked at yet, beside `py-spy
dump` on another such target: pairs by turns in one run, the shortest of each, which nothing else
on the machine disturbed, and their ratio. Environment as in tests/attach/harness.py; py-spy is that
of PATH, or one that pip puts into the cache folder once."""

import argparse
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "attach"))

import harness

PAIRS = 51  # both are said by the least, which a neighbour on the machine must not spoil


class Unavailable(Exception):
    """Why a tool to compare with is not here."""


def find_tool(name, package):
    """That of PATH, or of a package of the Python index, kept in the cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    folder = os.path.join(cache, "scalene-attach", name)
    places = os.path.join(folder, "bin") + os.pathsep + os.environ["PATH"]
    if not shutil.which(name, path=places):
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, package]
        installed = subprocess.run(pip, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if installed.returncode != 0:
            words = installed.stderr.decode().strip().splitlines() or ["it failed"]
            raise Unavailable("no %s: pip says %s" % (name, words[-1]))
    return shutil.which(name, path=places)


def find_py_spy():
    return find_tool("py-spy", "py-spy")


def measure(command, interpreter):
    """Seconds that the command takes for a fresh target of a few threads."""
    with harness.Target("threads.py", "many", "4", interpreter=interpreter) as target:
        begin = time.perf_counter()
        done = subprocess.run([*command, "dump", "--pid", str(target.pid)],
                              stdin=subprocess.DEVNULL, capture_output=True)
        taken = time.perf_counter() - begin
    if done.returncode != 0 or done.stdout.count(b"stay") != 4:
        raise AssertionError("%s: %r %r" % (command, done.stdout, done.stderr))
    return taken


def compare(interpreter, py_spy, pairs=PAIRS):
    """(the shortest of ours, the shortest of py-spy's), in seconds."""
    commands = {"ours": [harness.SCALENE_ATTACH], "py-spy": [py_spy]}
    taken = {name: [] for name in commands}
    for pair in range(pairs):
        order = sorted(commands, reverse=pair % 2 == 1)
        for name in order:
            taken[name].append(measure(commands[name], interpreter))
    return min(taken["ours"]), min(taken["py-spy"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    options = parser.parse_args()
    harness.enter_own_mounts()
    try:
        py_spy = find_py_spy()
    except Unavailable as reason:
        sys.exit(str(reason))
    for interpreter in harness.interpreters():
        if (3, 8) <= interpreter.version and not interpreter.free_threaded:
            if interpreter.root:
                harness.mount_into(interpreter.root)
            ours, theirs = compare(interpreter, py_spy, options.pairs)
            print("%s: %.1f ms, py-spy %.1f ms, ratio %.2f"
                  % (interpreter, ours * 1e3, theirs * 1e3, ours / theirs), flush=True)


if __name__ == "__main__":
    main()
