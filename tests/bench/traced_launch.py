#!/usr/bin/env python3
"""Why what we launch is not traced for its forks and execs: what a program may do, and what that
takes it, bare, under us, and under a tracer of its whole tree for good (traced_launch.c), by turns.
SCALENE_ATTACH names the built program, SCALENE_TEST_PROGRAMS the folder of the live tests'
programs, beside which the benchmarks stand; needs root, to become nobody, and strace. Ends with
status 1 where something does not work under us that works bare."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

NOBODY = 65534
ROUNDS = 5

# Name: what the program does; what it says of it comes last. OWN is a copy of `id` with rights of
# its own, as sudo has.
SCENES = {
    "us a signal": """
import os, signal, time
signal.signal(signal.SIGUSR1, lambda *_: None)
begin = time.perf_counter()
for _ in range(20000): os.kill(os.getpid(), signal.SIGUSR1)
print((time.perf_counter() - begin) / 20000 * 1e6)
""",
    "us a thread": """
import threading, time
begin = time.perf_counter()
for _ in range(3000):
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
print((time.perf_counter() - begin) / 3000 * 1e6)
""",
    "its child's own rights": """
import subprocess, sys
print(subprocess.run([sys.argv[1], "-u"], stdout=subprocess.PIPE).stdout.decode().strip() == "0")
""",
    "its own tracer": """
import os, subprocess
words = ["strace", "-o", os.devnull, "true"]
print(subprocess.run(words, stderr=subprocess.DEVNULL).returncode == 0)
""",
}


def ways(folder):
    programs = os.environ["SCALENE_TEST_PROGRAMS"]
    ours = shutil.copy(os.environ["SCALENE_ATTACH"], folder)
    tracer = os.path.join(programs, "..", "bench", "traced_launch")
    return {
        "bare": [],
        "ours": [ours, "-q", "-o", os.path.join(folder, "profile.json"), "--cpu-only", "--"],
        "traced for good": [shutil.copy(tracer, folder)],
    }


def run(way, python, scene, own):
    as_nobody = ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups",
                 "--inh-caps=-all"]
    answer = subprocess.run([*as_nobody, *way, python, "-I", "-S", "-c", scene, own], cwd="/",
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return json.loads(answer.stdout.decode().strip().lower() or "null")


def main():
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    held = True
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        own = shutil.copy(shutil.which("id"), folder)
        os.chmod(own, 0o4755)
        by_name = ways(folder)
        print("%-24s" % "" + "".join("%18s" % name for name in by_name))
        for name, scene in SCENES.items():
            said = {way: [] for way in by_name}
            for _ in range(ROUNDS):
                for way, words in by_name.items():
                    said[way].append(run(words, python, scene, own))
            works = isinstance(said["bare"][0], bool)
            shown = {way: all(found) if works else "%.1f" % statistics.median(found)
                     for way, found in said.items()}
            held = held and (not works or shown["ours"] or not shown["bare"])
            print("%-24s" % name + "".join("%18s" % shown[way] for way in by_name), flush=True)
    return not held


if __name__ == "__main__":
    sys.exit(main())
