"""What oracle_interpreter.py has a sub-interpreter run, as `<string>`, until it is told to end."""

import os


def leaf_one():
    pass


def leaf_other():
    pass


def one():
    leaf_one()  # -> leaf_one


def other():
    leaf_other()  # -> leaf_other


def is_over(pipe):
    try:
        return os.read(pipe, 1) == b""
    except BlockingIOError:
        return False


def rounds(pipe):
    while not is_over(pipe):  # -> is_over
        for _ in range(1000):
            one()  # -> one
            other()  # -> other


rounds(int(os.environ["TARGET_PIPES"].split(",")[1]))  # -> rounds
