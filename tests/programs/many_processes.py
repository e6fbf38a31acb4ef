"""Makes processes and waits for them all the time, each for one request, as some servers do.
Argument: for how long."""

import os
import sys
import time


def request(number):
    answer = [str(number + step) for step in range(20000)]
    return len("".join(answer))


end = time.perf_counter() + float(sys.argv[1])
count = 0
while time.perf_counter() < end:
    child = os.fork()
    if not child:
        request(count)
        os._exit(0)
    os.waitpid(child, 0)
    count += 1
