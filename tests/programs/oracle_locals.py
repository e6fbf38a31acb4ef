"""Functions with 1,800 locals, whose frames need data stack chunks of their own, by turns with
small ones."""

import types

import oracle_target

NAMES = ["local_%d" % number for number in range(1800)]


def small_leaf():
    pass


def small():
    small_leaf()  # -> small_leaf


def wide_leaf_a():
    pass


def wide_leaf_b():
    pass


def wide_a():
    wide_leaf_a()  # -> wide_leaf_a
    small()  # -> small


def wide_b():
    wide_leaf_b()  # -> wide_leaf_b
    small()  # -> small


def two_chunks_a():
    wide_a()  # -> wide_a
    small()  # -> small


def two_chunks_b():
    wide_b()  # -> wide_b
    small()  # -> small


def widened(function):
    """The same code with more locals."""
    code = function.__code__
    more = code.replace(co_varnames=(*code.co_varnames, *NAMES), co_nlocals=code.co_nlocals + 1800)
    return types.FunctionType(more, globals(), function.__name__)


wide_a, wide_b = widened(wide_a), widened(wide_b)  # -> widened
two_chunks_a, two_chunks_b = widened(two_chunks_a), widened(two_chunks_b)  # -> widened


def block_wide(count):
    for _ in range(count):
        wide_a()  # -> wide_a
        wide_b()  # -> wide_b
        wide_a()  # -> wide_a


def block_wide_turned(count):
    for _ in range(count):
        wide_b()  # -> wide_b
        wide_a()  # -> wide_a
        wide_b()  # -> wide_b


def block_chunks(count):
    for _ in range(count):
        two_chunks_a()  # -> two_chunks_a
        two_chunks_b()  # -> two_chunks_b
        two_chunks_a()  # -> two_chunks_a


def block_chunks_turned(count):
    for _ in range(count):
        two_chunks_b()  # -> two_chunks_b
        two_chunks_a()  # -> two_chunks_a
        two_chunks_b()  # -> two_chunks_b


if __name__ == "__main__":
    oracle_target.run(  # -> run
        twins=[
            ((block_wide, block_wide_turned), (wide_a, wide_b)),
            ((block_chunks, block_chunks_turned), (two_chunks_a, two_chunks_b)),
        ]
    )
