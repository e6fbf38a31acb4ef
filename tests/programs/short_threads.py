"""Threads that live for a millisecond or two, one after the other, two kinds in turn; says in the
end what all of them cost with their beginnings and ends, by the kernel's account."""

import json
import os
import sys
import threading
import time


def python(n=30000):
    while n: n -= 1


def native(n=100000):
    sum(range(n))


end = time.perf_counter() + float(sys.argv[1])
while time.perf_counter() < end:
    for function in python, native:
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()
process_s, main_s = time.process_time(), time.thread_time()
print(json.dumps({"process_s": process_s, "threads_s": process_s - main_s}), flush=True)
os._exit(0)  # what the interpreter does at its end would count, too
