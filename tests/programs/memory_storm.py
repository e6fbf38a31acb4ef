"""Allocates as much in each step that it is told to take, and runs a child at its end."""

import json
import os
import subprocess
import sys
from itertools import repeat

SIZE, TIMES = 20000, 2000

ready, go = map(int, os.environ["TARGET_PIPES"].split(","))


def say(what):
    os.write(ready, json.dumps(what).encode() + b"\n")


def storm():
    for _ in repeat(None, TIMES):
        bytes(SIZE)


def main():
    line = storm.__code__.co_firstlineno + 2
    say({"pid": os.getpid(), "line": line, "size": TIMES * sys.getsizeof(bytes(SIZE))})
    while os.read(go, 1) == b"x":
        storm()
        say("done")
    child = subprocess.run([sys.executable, "-c", "print('fine')"], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)
    say({"result": 42, "children": [child.stdout.decode()]})


main()
