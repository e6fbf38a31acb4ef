"""Loops for as many seconds as the command line says, and tells how much of a CPU it had."""

import sys
import time


def spin(n):
    while n: n -= 1


end = time.perf_counter() + float(sys.argv[1])
while time.perf_counter() < end:
    spin(10000)
print(time.process_time())
