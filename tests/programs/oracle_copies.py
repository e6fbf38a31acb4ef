"""Code objects that are made, run and freed all the time. A copy is called after its template and its number, its file
after its name, and its lines are moved by its number: what is left of an earlier one at that address does not fit."""

import itertools
import sys
import types

import oracle_target

SHIFTS = 97
NUMBERS = itertools.count()


def leaf_s():
    pass


def leaf_t():
    pass


def small():
    leaf_s()  # -> leaf_s
    leaf_s()  # -> leaf_s


def large(first=1, second=2):
    third = first + second
    for fourth in (first, second, third):
        leaf_t()  # -> leaf_t
    return fourth


def copy(template):
    code = template.__code__
    number = next(NUMBERS)
    name = "%s_%d" % (template.__name__, number)
    facts = dict(
        co_name=name, co_filename=name + ".py", co_firstlineno=code.co_firstlineno + number % SHIFTS
    )
    if sys.version_info >= (3, 11):
        facts["co_qualname"] = name
    return types.FunctionType(code.replace(**facts), globals(), name, template.__defaults__)


def one_small():
    function = copy(small)  # -> copy
    for _ in range(10):
        function()  # -> small
        _ = 0


def one_large():
    function = copy(large)  # -> copy
    for _ in range(10):
        function()  # -> large
        _ = 0


def block_copies(count):
    for _ in range(count):
        one_small()  # -> one_small
        one_large()  # -> one_large
        _ = 0


def block_small(count):
    for _ in range(count):
        one_small()  # -> one_small
        _ = 0


def block_large(count):
    for _ in range(count):
        one_large()  # -> one_large
        _ = 0


def block_pairs(count):
    """Freed at once, so that the next takes its place."""
    for _ in range(count):
        copy(small)()  # -> copy, small
        copy(small)()  # -> copy, small
        _ = 0


if __name__ == "__main__":
    oracle_target.run(  # -> run
        {block_copies: {"one_small": block_small, "one_large": block_large}, block_pairs: {}},
        copies=SHIFTS,
    )
