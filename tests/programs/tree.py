"""A tree of processes, and what the kernel charged it. The root adopts whoever loses its parent,
waits for all, and says what they used; each Python writes down who it was."""

import ctypes
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import time

SHORT_CHILDREN = 10


def burn(seconds):
    """CPU seconds, whatever the machine is busy with."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(200))


def note(kind):
    with open(os.environ["TREE_NOTES"], "a") as notes:
        notes.write(json.dumps([os.getpid(), kind]) + "\n")


def work(kind, seconds):
    note(kind)
    burn(seconds)


def command(kind, *more):
    return [sys.executable, os.path.abspath(__file__), kind, *more]


def run(*words):
    subprocess.run(words, check=True)


def start_methods():
    """A pool of forks; spawned and forkserver's ones beside each other."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.starmap(work, [("pool", 0.12)] * 4, chunksize=1)
    processes = [
        multiprocessing.get_context(method).Process(target=work, args=(method, 0.2))
        for method in ("spawn", "forkserver")
        for _ in range(2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert not any(process.exitcode for process in processes)


def commands():
    run(*command("subprocess", "0.15"))
    run(*command("exec", "0.1"))
    shell = (
        '"$0" "$1" shell 0.1; "$0" "$1" shell 0.05;'
        " i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"
    )
    run("/bin/sh", "-c", shell, sys.executable, os.path.abspath(__file__))


def short_children():
    for _ in range(SHORT_CHILDREN):
        child = os.fork()
        if not child:
            work("short", 0.02)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0


def all_of_it():
    note("tree")
    start_methods()
    commands()
    short_children()
    work("tree", 0.1)


def adopt_all():
    pr_set_child_subreaper = 36
    ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


def root():
    import target

    adopt_all()
    target.say(root=os.getpid())
    if "attached" in sys.argv:
        os.read(target.GO, 1)
    subprocess.run(command("tree"), check=True)
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    target.say(kernel_s=used.ru_utime + used.ru_stime)
    target.wait_for_go()
    target.say(result=42)


def main():
    kind = sys.argv[1]
    if kind == "root":
        root()
    elif kind == "tree":
        all_of_it()
    elif kind == "exec":
        burn(float(sys.argv[2]))
        os.execv(sys.executable, command("after_exec", sys.argv[2]))
    else:
        work(kind, float(sys.argv[2]))


if __name__ == "__main__":
    main()
