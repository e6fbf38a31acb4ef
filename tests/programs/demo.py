"""The program that README's first command dumps: a counter, a reader and a sleeper. Says "ready" on
standard output when all of them have started, and runs until it is ended."""

import os
import threading
import time

at_work = threading.Barrier(4)


def count_up():
    at_work.wait()
    number = 0
    while True:
        number = add_one(number)


def add_one(number):
    return number + 1


def wait_for_bytes(pipe):
    at_work.wait()
    os.read(pipe, 1)


def sleep_for_long():
    at_work.wait()
    while True:
        time.sleep(3600)


def serve():
    read_end, write_end = os.pipe()
    threading.Thread(target=count_up, name="counter", daemon=True).start()
    threading.Thread(target=wait_for_bytes, args=(read_end,), name="reader", daemon=True).start()
    threading.Thread(target=sleep_for_long, name="sleeper", daemon=True).start()
    at_work.wait()
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    serve()
