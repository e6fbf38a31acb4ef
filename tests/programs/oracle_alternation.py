"""Two chains of calls that alternate as fast as the interpreter can: flat, nested, with a leaf that both share."""

import oracle_target


def flat_x():
    pass


def flat_y():
    pass


def flat_a():
    flat_x()  # -> flat_x


def flat_b():
    flat_y()  # -> flat_y


def block_flat():
    for _ in range(200):
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


def block_nested():
    for _ in range(20):
        nested_a()  # -> nested_a
        nested_b()  # -> nested_b


def shared_leaf():
    pass


def shared_left():
    pass
    shared_leaf()  # -> shared_leaf


def shared_right():
    shared_leaf()  # -> shared_leaf
    pass


def block_shared():
    for _ in range(100):
        shared_left()  # -> shared_left
        shared_right()  # -> shared_right


def quiet():
    count = 0
    while count < 3000:
        count += 1


def block_quiet():
    """Hardly a call: a sampler that loses what is busy with calls shows more of this."""
    quiet()  # -> quiet


if __name__ == "__main__":
    oracle_target.run(  # -> run
        [block_flat, block_quiet, block_nested, block_shared],
        twins=[("flat_a", "flat_b"), ("nested_a", "nested_b"), ("shared_left", "shared_right")],
    )
