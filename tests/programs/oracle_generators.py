"""Generators and coroutines that are advanced by turns: endless ones, chains of them, and short
ones that are made and freed all the time."""

import types

import oracle_target


def plain_leaf_a():
    pass


def plain_leaf_b():
    pass


def plain_a():
    while True:
        plain_leaf_a()  # -> plain_leaf_a
        yield


def plain_b():
    while True:
        plain_leaf_b()  # -> plain_leaf_b
        yield


PLAIN_A = plain_a()  # -> plain_a
PLAIN_B = plain_b()  # -> plain_b


def block_plain(count):
    for _ in range(count):
        next(PLAIN_A)  # -> plain_a
        next(PLAIN_B)  # -> plain_b
        next(PLAIN_A)  # -> plain_a


def block_plain_turned(count):
    for _ in range(count):
        next(PLAIN_B)  # -> plain_b
        next(PLAIN_A)  # -> plain_a
        next(PLAIN_B)  # -> plain_b


def chain_leaf_a():
    pass


def chain_leaf_b():
    pass


def chain_inner_a():
    while True:
        chain_leaf_a()  # -> chain_leaf_a
        yield


def chain_middle_a():
    yield from chain_inner_a()  # -> chain_inner_a


def chain_a():
    yield from chain_middle_a()  # -> chain_middle_a


def chain_inner_b():
    while True:
        chain_leaf_b()  # -> chain_leaf_b
        yield


def chain_middle_b():
    yield from chain_inner_b()  # -> chain_inner_b


def chain_b():
    yield from chain_middle_b()  # -> chain_middle_b


CHAIN_A = chain_a()  # -> chain_a
CHAIN_B = chain_b()  # -> chain_b


def block_chain(count):
    for _ in range(count):
        next(CHAIN_A)  # -> chain_a
        next(CHAIN_B)  # -> chain_b
        next(CHAIN_A)  # -> chain_a


def block_chain_turned(count):
    for _ in range(count):
        next(CHAIN_B)  # -> chain_b
        next(CHAIN_A)  # -> chain_a
        next(CHAIN_B)  # -> chain_b


@types.coroutine
def give_way():
    yield


async def hop_a():
    await give_way()  # -> give_way


async def coroutine_a():
    while True:
        await hop_a()  # -> hop_a


async def hop_b():
    await give_way()  # -> give_way


async def coroutine_b():
    while True:
        await hop_b()  # -> hop_b


COROUTINE_A = coroutine_a()  # -> coroutine_a
COROUTINE_B = coroutine_b()  # -> coroutine_b


def block_coroutine(count):
    for _ in range(count):
        COROUTINE_A.send(None)  # -> coroutine_a
        COROUTINE_B.send(None)  # -> coroutine_b
        COROUTINE_A.send(None)  # -> coroutine_a


def block_coroutine_turned(count):
    for _ in range(count):
        COROUTINE_B.send(None)  # -> coroutine_b
        COROUTINE_A.send(None)  # -> coroutine_a
        COROUTINE_B.send(None)  # -> coroutine_b


def short_leaf_a():
    pass


def short_leaf_b():
    pass


def short_a():
    short_leaf_a()  # -> short_leaf_a
    yield
    short_leaf_a()  # -> short_leaf_a


def short_b():
    short_leaf_b()  # -> short_leaf_b
    yield
    short_leaf_b()  # -> short_leaf_b


def block_short(count):
    for _ in range(count):
        list(short_a())  # -> short_a
        list(short_b())  # -> short_b
        list(short_a())  # -> short_a


def block_short_turned(count):
    for _ in range(count):
        list(short_b())  # -> short_b
        list(short_a())  # -> short_a
        list(short_b())  # -> short_b


if __name__ == "__main__":
    oracle_target.run(  # -> run
        twins=[
            ((block_plain, block_plain_turned), (plain_a, plain_b)),
            ((block_chain, block_chain_turned), (chain_a, chain_b)),
            ((block_coroutine, block_coroutine_turned), (coroutine_a, coroutine_b)),
            ((block_short, block_short_turned), (short_a, short_b)),
        ]
    )
