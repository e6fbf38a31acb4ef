"""Two chains of calls that alternate as fast as the interpreter can: flat, nested, with a leaf
that both share, and one that calls all the time with one that hardly calls."""

import oracle_target


def flat_x():
    pass


def flat_y():
    pass


def flat_a():
    flat_x()  # -> flat_x


def flat_b():
    flat_y()  # -> flat_y


def block_flat(count):
    for _ in range(count):
        flat_a()  # -> flat_a
        flat_b()  # -> flat_b
        flat_a()  # -> flat_a


def block_flat_turned(count):
    for _ in range(count):
        flat_b()  # -> flat_b
        flat_a()  # -> flat_a
        flat_b()  # -> flat_b


def nested_a_inner():
    pass


def nested_a_early():
    nested_a_inner()  # -> nested_a_inner


def nested_a_late():
    nested_a_inner()  # -> nested_a_inner
    nested_a_inner()  # -> nested_a_inner


def nested_a():
    nested_a_early()  # -> nested_a_early
    nested_a_late()  # -> nested_a_late


def nested_b_inner():
    pass


def nested_b_early():
    nested_b_inner()  # -> nested_b_inner


def nested_b_late():
    nested_b_inner()  # -> nested_b_inner
    nested_b_inner()  # -> nested_b_inner


def nested_b():
    nested_b_early()  # -> nested_b_early
    nested_b_late()  # -> nested_b_late


def block_nested(count):
    for _ in range(count):
        nested_a()  # -> nested_a
        nested_b()  # -> nested_b
        nested_a()  # -> nested_a


def block_nested_turned(count):
    for _ in range(count):
        nested_b()  # -> nested_b
        nested_a()  # -> nested_a
        nested_b()  # -> nested_b


def shared_leaf():
    pass


def shared_left():
    shared_leaf()  # -> shared_leaf


def shared_right():
    """On another line of its function, with another line of its caller."""
    shared_leaf()  # -> shared_leaf


def block_shared(count):
    for _ in range(count):
        shared_left()  # -> shared_left
        shared_right()  # -> shared_right
        shared_left()  # -> shared_left


def block_shared_turned(count):
    for _ in range(count):
        shared_right()  # -> shared_right
        shared_left()  # -> shared_left
        shared_right()  # -> shared_right


def empty():
    pass


def busy():
    for _ in range(400):
        empty()  # -> empty


def quiet():
    count = 0
    while count < 400:
        count += 1


UNEVEN_S = [0.0, 0.0]
AT_A_TIME = 100  # so that what is lost around the clock's system calls is little


def block_uneven(count):
    """Who loses a sample to a call, or looks again after one, shows less of the busy one."""
    for _ in range(count):
        start = oracle_target.clock()
        for _ in range(AT_A_TIME):
            busy()  # -> busy
        middle = oracle_target.clock()
        for _ in range(AT_A_TIME):
            quiet()  # -> quiet
        UNEVEN_S[0] += middle - start
        UNEVEN_S[1] += oracle_target.clock() - middle


if __name__ == "__main__":
    oracle_target.run(  # -> run
        twins=[
            ((block_flat, block_flat_turned), (flat_a, flat_b)),
            ((block_nested, block_nested_turned), (nested_a, nested_b)),
            ((block_shared, block_shared_turned), (shared_left, shared_right)),
        ],
        uneven=[(block_uneven, (busy, quiet), UNEVEN_S)],
    )
