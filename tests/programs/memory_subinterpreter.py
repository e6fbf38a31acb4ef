"""Allocates in a sub-interpreter, which the thread that runs it has made, and prints in which line
and how much."""

import json
import os
import sys

try:
    import _interpreters as interpreters  # 3.13 and later
except ImportError:
    import _xxsubinterpreters as interpreters

COUNT, SIZE = 300, 200000
SOURCE = "exec(compile(open({0!r}).read(), {0!r}, 'exec'), {{'__name__': 'inside'}})"


def allocate():
    return [bytes(SIZE) for _ in range(COUNT)]


def main():
    number = interpreters.create()
    interpreters.run_string(number, SOURCE.format(os.path.abspath(__file__)))
    interpreters.destroy(number)
    print(json.dumps({"line": allocate.__code__.co_firstlineno + 1,
                      "allocated": COUNT * sys.getsizeof(bytes(SIZE))}), flush=True)


if __name__ == "inside":
    allocate()
else:
    main()
