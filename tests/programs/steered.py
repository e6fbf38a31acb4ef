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


def parent():
    """Of a child that works until a byte comes."""
    pid = os.fork()
    if not pid:
        target.say(child=os.getpid())
        wait_for_step()
        os._exit(0)
    os.waitpid(pid, 0)


def orphan():
    """The same, but whoever made it ends at the first byte, and the second is its own."""
    ended, held = os.pipe()
    middle = os.fork()
    if not middle:
        middle = os.getpid()
        if os.fork():
            wait_for_step()
            os._exit(0)
        target.say(child=os.getpid())
        while os.getppid() == middle:
            sum(range(20000))
        target.say(done="middle")
        wait_for_step()
        os._exit(0)
    os.close(held)
    os.waitpid(middle, 0)
    os.read(ended, 1)


target.say(pid=os.getpid())
{"alone": alone, "child": child, "parent": parent, "orphan": orphan}[sys.argv[1]]()
target.say(done="all")
sys.exit(5)
