"""One thread that works in two interpreters by turns, and says at its end what that used."""

import json
import sys
import time

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

WORK = "sum(range(400000))"


def main():
    below = interpreters.create()
    end = time.process_time() + float(sys.argv[1])
    while time.process_time() < end:
        interpreters.run_string(below, WORK)
        exec(WORK)
    print(json.dumps({"process_s": time.process_time()}))


main()
