"""A program to be launched, by file, as a module or with a shebang: burns CPU time in one line and
does what its words say. `launched.py SECONDS [exit N | signal N | raise | echo]`"""

import os
import signal
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
    elif what == "wait":
        print("waiting", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
