"""Threads that live for a millisecond or two, one after the other, two kinds in turn; says in the
end what all of them cost, by the kernel's account."""

import json
import os
import sys
import threading
import time

used = {"python": 0.0, "native": 0.0}


def python(n=30000):
    start = time.thread_time()
    while n: n -= 1
    used["python"] += time.thread_time() - start


def native(n=100000):
    start = time.thread_time()
    sum(range(n))
    used["native"] += time.thread_time() - start


end = time.perf_counter() + float(sys.argv[1])
while time.perf_counter() < end:
    for function in python, native:
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()
print(json.dumps({"used": used, "process_s": time.process_time()}), flush=True)
os._exit(0)  # what the interpreter does at its end would count, too
