"""Pushes and pops frames of all kinds, while the signal handlers of the library that is named copy.
Prints how many copies there were, and how many of them were noticed."""

import ctypes
import sys

COPIES = 20000
parts = ctypes.CDLL(sys.argv[2])


def outer(value):
    return middle(value) + 1


def middle(value):
    return inner(value) + 1


def inner(value):
    def generator():
        yield value
    return sum(generator())


class Made:
    def __init__(self, value):
        self.value = value

    @property
    def computed(self):
        return outer(self.value)


def interrupted():
    """By the clock; codes come and go meanwhile."""
    parts.handlers_interrupt(50)
    while parts.handlers_copies() < COPIES:
        for number in range(1000):
            Made(number).computed
        exec("def made(a, b=%d):\n    return a + b\nmade(1)" % parts.handlers_copies(), {})
    parts.handlers_interrupt(0)


def small_stack():
    assert parts.handlers_on_small_stack(ctypes.c_size_t(8192), 5000) == 0


globals()[sys.argv[1]]()
print(parts.handlers_copies(), parts.handlers_wrong(), flush=True)
