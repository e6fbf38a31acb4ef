"""A program that its profiler has started: it works until a byte comes through the pipe, does one
more thing, and ends with a status of its own."""

import os
import select
import sys
import time

import target


def wait_for_step():
    while not select.select([target.GO], [], [], 0)[0]:
        sum(range(20000))
    os.read(target.GO, 1)


def work_of_child():
    end = time.process_time() + 0.3
    while time.process_time() < end:
        sum(range(20000))


def alone():
    wait_for_step()


def child():
    wait_for_step()
    pid = os.fork()
    if not pid:
        work_of_child()
        os._exit(0)
    os.waitpid(pid, 0)
    target.say(done="child")
    wait_for_step()


target.say(pid=os.getpid())
{"alone": alone, "child": child}[sys.argv[1]]()
target.say(done="all")
sys.exit(5)
