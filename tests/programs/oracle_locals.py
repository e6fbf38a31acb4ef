"""Functions with 1,800 locals, whose frames need data stack chunks of their own, by turns with small ones."""

import types

import oracle_target

NAMES = ["local_%d" % number for number in range(1800)]


def small_leaf():
    pass


def small():
    small_leaf()  # -> small_leaf


def wide_leaf():
    pass


def wide():
    wide_leaf()  # -> wide_leaf
    small()  # -> small


def middle():
    wide()  # -> wide


def widened(function):
    """The same code with more locals."""
    code = function.__code__
    more = code.replace(co_varnames=(*code.co_varnames, *NAMES), co_nlocals=code.co_nlocals + 1800)
    return types.FunctionType(more, globals(), function.__name__)


wide = widened(wide)  # -> widened
middle = widened(middle)  # -> widened


def block_wide(count):
    for _ in range(count):
        wide()  # -> wide
        small()  # -> small
        _ = 0


def block_wide_alone(count):
    for _ in range(count):
        wide()  # -> wide
        _ = 0


def block_small_alone(count):
    for _ in range(count):
        small()  # -> small
        _ = 0


def block_wide_twice(count):
    for _ in range(count):
        middle()  # -> middle
        small()  # -> small
        _ = 0


def block_middle_alone(count):
    for _ in range(count):
        middle()  # -> middle
        _ = 0


if __name__ == "__main__":
    oracle_target.run({  # -> run
        block_wide: {"wide": block_wide_alone, "small": block_small_alone},
        block_wide_twice: {"middle": block_middle_alone, "small": block_small_alone},
    })
