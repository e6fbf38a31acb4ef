"""A thread that calls the kernel all the time, briefly, and works a little after each call. How
long the calls took, and all: the same work without them is done in turns. Argument: seconds."""

import json
import os
import sys
import time

end = time.perf_counter() + float(sys.argv[1])
clock = time.thread_time
with_calls = without = 0.0


def work():
    number = 0
    for step in range(100):
        number += step
    return number


while time.perf_counter() < end:
    start = clock()
    for _ in range(500):
        os.getpid()  # call
        work()
    between = clock()
    for _ in range(500):
        work()
    with_calls += between - start
    without += clock() - between
print(json.dumps({"calls": with_calls - without, "all": with_calls + without}))
