"""Works, allocates and keeps a cache that is emptied now and then. Argument: for how long."""

import json
import random
import sys
import time


def make(draw):
    return {"name": "x" * draw.randrange(50), "values": [draw.random() for _ in range(50)]}


def store(cache, draw):
    record = make(draw)
    cache[draw.randrange(5000)] = json.loads(json.dumps(record))
    if len(cache) > 4000:
        cache.clear()


end = time.perf_counter() + float(sys.argv[1])
kept, chance = {}, random.Random(1)
while time.perf_counter() < end:
    for _ in range(100):
        store(kept, chance)
