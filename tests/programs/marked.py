"""Marks one of its two functions, as users of Scalene do, without importing anything for that."""

import time


@profile
def marked(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(500))


def unmarked(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(500))


marked(0.3)
unmarked(0.3)
