"""A sub-interpreter that one thread has made and another one runs: until 3.12 its thread state
bears the number of its maker, who sleeps meanwhile."""

import os
import threading

import subinterpreters
import target

FOLDER = os.path.dirname(os.path.abspath(__file__))


def inside(interpreter, source):  # root
    subinterpreters.interpreters.run_string(interpreter, source)


def main():
    os.set_blocking(target.GO, False)
    with open(os.path.join(FOLDER, "oracle_inside.py")) as file:
        source = file.read()
    interpreter = subinterpreters.interpreters.create(**subinterpreters.OPTIONS)
    runner = threading.Thread(target=inside, args=(interpreter, source))
    runner.start()
    target.say(twins=[], copies=None)  # -> say
    runner.join()
    target.say(result=42, times={}, uneven=[])  # -> say


if __name__ == "__main__":
    main()  # -> main
