#!/usr/bin/env python3
"""Makes images/RELEASE.image and golden/RELEASE.txt: starts target.py on the newest interpreter of
each release, stops it, records its memory, and keeps both files only if the replayed stacks are
what the interpreter said of itself.
usage: record.py BUILD [RELEASE…]      (BUILD: the build folder, with the tests built)"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
RUN = "import sys; exec(compile(sys.argv[1], 'target.py', 'exec'))"
FRAME = re.compile(r"    (.+) (\S+):(\d+):(\d+)( calls)?( entry)?( anchor)?")


def start(row):
    """The target, stopped, and what it said of its stacks."""
    prefix = ["chroot", row["root"]] if row["root"] else []
    program = (HERE / "target.py").read_text(encoding="utf-8")
    target = subprocess.Popen([*prefix, row["python"], "-ISBX", "utf8", "-c", RUN, program],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    truth = json.loads(target.stdout.readline())
    target.send_signal(signal.SIGSTOP)
    os.waitpid(target.pid, os.WUNTRACED)
    return target, truth


def parse(text):
    """Threads of a replay as the target tells its own: [name, frames]."""
    threads = []
    for line in text.splitlines()[1:]:
        frame = FRAME.fullmatch(line)
        if frame:
            threads[-1][1].append([frame[1], frame[2], int(frame[3]), int(frame[4])])
        else:
            threads.append([line[len("thread "):].replace(", holds the GIL", ""), []])
    return threads


def check(text, truth):
    """The target told its stacks from inside stay() and park(), the innermost frames."""
    replayed = sorted((name, frames[1:]) for name, frames in parse(text))
    told = sorted((name, frames) for name, frames in truth)
    for got, want in zip(replayed, told):
        if got != tuple(want):
            sys.exit(f"replayed and true stacks differ:\n{got}\n{want}")
    if len(replayed) != len(told):
        sys.exit(f"{len(replayed)} threads replayed, {len(told)} told")


def forget_home(image):
    """Reads go a little too far, and may have met a path of this machine there."""
    home = str(pathlib.Path.home()).encode()
    image.write_bytes(image.read_bytes().replace(home, b"~" * len(home)))


def record(build, row):
    tools = build / "tests" / "snapshots"
    image = HERE / "images" / f"{row['release']}.image"
    fresh = image.with_suffix(".new")
    target, truth = start(row)
    try:
        subprocess.run([tools / "record", str(target.pid), fresh], check=True)
    finally:
        target.kill()
        target.wait()
    forget_home(fresh)
    text = subprocess.run([tools / "replay", fresh], check=True, stdout=subprocess.PIPE,
                          encoding="utf-8").stdout
    check(text, truth)
    fresh.rename(image)
    (HERE / "golden" / f"{row['release']}.txt").write_text(text, encoding="utf-8")
    print(f"{row['release']}: {image.stat().st_size} bytes, {len(truth)} threads")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1])
    rows = json.loads((build / "interpreters.json").read_text())
    newest = {row["release"]: row for row in rows}  # ordered: the newest of a release comes last
    for release in sys.argv[2:] or newest:
        record(build, newest[release])


main()
