"""A program to be launched, by file, as a module or with a shebang: burns CPU time in one line and
does what its words say.
`launched.py SECONDS [exit N | signal N | raise | echo | count N | child SECONDS | turns N | wait]`
"""

import os
import signal
import subprocess
import sys
import time


def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(500))


def count_signals(number):
    """Says what it hears; the last word ends it."""
    heard = []
    signal.signal(number, lambda *_: heard.append(number))
    print("listening", flush=True)
    for line in sys.stdin:
        print(len(heard), flush=True)
        if line == "end\n":
            break
    sys.exit(10 + len(heard))


def main():
    burn(float(sys.argv[1]))
    what, *more = sys.argv[2:] + ["exit", "0"]
    if what == "exit":
        sys.exit(int(more[0]))
    elif what == "signal":
        os.kill(os.getpid(), int(more[0]))
    elif what == "raise":
        raise RuntimeError("as it pleases")
    elif what == "echo":
        print(sys.stdin.readline().upper(), end="")
    elif what == "count":
        count_signals(int(more[0]))
    elif what == "child":
        subprocess.check_call([sys.executable, __file__, *more])
    elif what == "turns":
        for _ in range(int(more[0])):
            burn(0.02)
            time.sleep(0.01)
    elif what == "wait":
        print("waiting", flush=True)
        while True:  # a signal between the print and one long wait would not be met
            time.sleep(0.02)


if __name__ == "__main__":
    main()
