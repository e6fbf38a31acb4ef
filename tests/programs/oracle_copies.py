"""Code objects that are made, run and freed all the time. A copy is called after its template
and its number, its file after its name, and its lines are moved by its number: what is left of
an earlier one at that address does not fit."""

import itertools
import sys
import types

import oracle_target

SHIFTS, LINES = 97, 20  # more than any of these functions has
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
        co_name=name,
        co_filename=name + ".py",
        co_firstlineno=code.co_firstlineno + number % SHIFTS * LINES,
    )
    if sys.version_info >= (3, 11):
        facts["co_qualname"] = name
    return types.FunctionType(code.replace(**facts), globals(), name, template.__defaults__)


def many_small():
    for _ in range(20):
        function = copy(small)  # -> copy
        for _ in range(5):
            function()  # -> small


def many_large():
    for _ in range(10):
        function = copy(large)  # -> copy
        for _ in range(20):
            function()  # -> large


COPIES_S = [0.0, 0.0]


def block_copies(count):
    for _ in range(count):
        start = oracle_target.clock()
        many_small()  # -> many_small
        middle = oracle_target.clock()
        many_large()  # -> many_large
        COPIES_S[0] += middle - start
        COPIES_S[1] += oracle_target.clock() - middle


def once_a():
    """Freed at once, so that the next takes its place."""
    copy(small)()  # -> copy, small


def once_b():
    copy(small)()  # -> copy, small


def block_once(count):
    for _ in range(count):
        once_a()  # -> once_a
        once_b()  # -> once_b
        once_a()  # -> once_a


def block_once_turned(count):
    for _ in range(count):
        once_b()  # -> once_b
        once_a()  # -> once_a
        once_b()  # -> once_b


if __name__ == "__main__":
    oracle_target.run(  # -> run
        twins=[((block_once, block_once_turned), (once_a, once_b))],
        uneven=[(block_copies, (many_small, many_large), COPIES_S)],
        copies=(SHIFTS, LINES),
    )
