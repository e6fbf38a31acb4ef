"""Work in steps: each waits for a byte through the pipe, burns CPU time in a function of its own,
and says how much of it the whole process used meanwhile."""

import os
import time

import target

STEP_S = 0.5


def first(end):
    while time.process_time() < end:
        sum(range(2000))


def second(end):
    while time.process_time() < end:
        sum(range(2000))


def third(end):
    while time.process_time() < end:
        sum(range(2000))


def steps():
    target.say(threads=[])
    for step in (first, second, third):
        if not os.read(target.GO, 1):
            return 42
        begin = time.process_time()
        step(begin + STEP_S)
        target.say(step=step.__name__, cpu_s=time.process_time() - begin)
    target.wait_for_go()
    return 42


target.run({"steps": steps})
