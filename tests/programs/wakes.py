"""Works on one line, on another, and sleeps, each for a millisecond, again and again, for as many
seconds as the command line says."""

import sys
import time

STEP_S = 0.001


def first(until):
    while time.perf_counter() < until: pass  # first


def second(until):
    while time.perf_counter() < until: pass  # second


end = time.perf_counter() + float(sys.argv[1])
while time.perf_counter() < end:
    start = time.perf_counter()
    first(start + STEP_S)
    second(start + 2 * STEP_S)
    time.sleep(STEP_S)
