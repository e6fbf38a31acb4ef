"""Threads that wait long and briefly in turns, and how long each line took in sum. Arguments: for
how long, how many threads, and how many times as long as 1 ms a brief wait is."""

import json
import random
import sys
import threading
import time

seconds, threads, scale = float(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) / 1000
end = time.perf_counter() + seconds
sums = []


def work(seed):
    chance = random.Random(seed)
    long_s = brief_s = 0.0
    while (start := time.perf_counter()) < end:
        time.sleep(scale * chance.uniform(5, 15))  # long
        between = time.perf_counter()
        time.sleep(scale * chance.uniform(0.5, 1.5))  # brief
        long_s += between - start
        brief_s += time.perf_counter() - between
    sums.append((long_s, brief_s))


workers = [threading.Thread(target=work, args=(seed,)) for seed in range(threads - 1)]
for worker in workers:
    worker.start()
work(threads)
for worker in workers:
    worker.join()
long, brief = map(sum, zip(*sums))
print(json.dumps({"long": long, "brief": brief}))
