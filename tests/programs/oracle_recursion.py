"""Two families of functions that call each other to a depth of 300; on no stack are there
members of both."""

import oracle_target

DEPTH = 300


def even_p(left):
    if left:
        odd_p(left - 1)  # -> odd_p


def odd_p(left):
    if left:
        even_p(left - 1)  # -> even_p


def even_q(left):
    if left:
        odd_q(left - 1)  # -> odd_q


def odd_q(left):
    if left:
        even_q(left - 1)  # -> even_q


def block_families(count):
    for _ in range(count):
        even_p(DEPTH)  # -> even_p
        even_q(DEPTH)  # -> even_q
        even_p(DEPTH)  # -> even_p


def block_families_turned(count):
    for _ in range(count):
        even_q(DEPTH)  # -> even_q
        even_p(DEPTH)  # -> even_p
        even_q(DEPTH)  # -> even_q


def leaf_t():
    pass


def tree_t(left):
    if left:
        tree_t(left - 1)  # -> tree_t
        leaf_t()  # -> leaf_t


def leaf_u():
    pass


def tree_u(left):
    if left:
        leaf_u()  # -> leaf_u
        leaf_u()  # -> leaf_u
        tree_u(left - 1)  # -> tree_u


TREES_S = [0.0, 0.0]
AT_A_TIME = 10  # the clock is slow


def block_trees(count):
    """Leaves at each level, on the way back or on the way in."""
    for _ in range(count):
        start = oracle_target.clock()
        for _ in range(AT_A_TIME):
            tree_t(DEPTH)  # -> tree_t
        middle = oracle_target.clock()
        for _ in range(AT_A_TIME):
            tree_u(DEPTH)  # -> tree_u
        TREES_S[0] += middle - start
        TREES_S[1] += oracle_target.clock() - middle


if __name__ == "__main__":
    oracle_target.run(  # -> run
        twins=[((block_families, block_families_turned), (even_p, even_q))],
        uneven=[(block_trees, (tree_t, tree_u), TREES_S)],
    )
