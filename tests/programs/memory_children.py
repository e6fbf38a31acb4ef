"""Allocates in children: one that is forked, one that is another program, one below a shell. Prints
which line allocates how much in each."""

import json
import os
import subprocess
import sys

MEBI = 1 << 20


def next_line():
    return sys._getframe(1).f_lineno + 1


def in_fork():
    line = next_line()
    block = bytearray(24 * MEBI)
    return line, len(block)


def in_program():
    line = next_line()
    block = bytearray(40 * MEBI)
    return line, len(block)


def below_shell():
    line = next_line()
    block = bytearray(56 * MEBI)
    return line, len(block)


def say(act):
    line, size = act()
    print(json.dumps({"name": act.__name__, "line": line, "allocated": size, "pid": os.getpid()}),
          flush=True)
    os._exit(0)


def main():
    inherited = bytearray(8 * MEBI)
    pid = os.fork()
    if not pid:
        del inherited  # the parent's: nobody here has allocated it
        say(in_fork)
    os.waitpid(pid, 0)
    command = [sys.executable, __file__]
    subprocess.check_call(command + ["in_program"])
    subprocess.check_call(["sh", "-c", '"$@"; exit 0', "sh"] + command + ["below_shell"])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        say(globals()[sys.argv[1]])
    main()
