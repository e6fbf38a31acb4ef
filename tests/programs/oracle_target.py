"""What the oracle's programs share. A program runs blocks in turn, each about as long as the
others; the CPU time of each is added up, and that is what shares of samples are compared with.

Which stacks can exist is written beside the code: `# -> f, g` says who may be called from that
line, `# root` where a thread may begin. Programs keep to functions at the top of the file, each
with a name of its own."""

import os
import random
import time

import target

BLOCK_S = 0.001
TURNS = 20  # of each block between two looks whether it is over

clock = time.thread_time


class Block:
    def __init__(self, function):
        self.function, self.count, self.seconds = function, 1, 0.0


def is_over():
    try:
        return os.read(target.GO, 1) == b""
    except BlockingIOError:
        return False


def fit(block):
    """How often it calls its adversaries, so that all blocks take the same time: a thread can be
    stopped at the end of a system call rather than a moment later, so that what follows the
    clock's calls loses a little."""
    elapsed = 0
    while elapsed < BLOCK_S / 2:
        start = clock()
        block.function(block.count)
        elapsed = clock() - start
        block.count = max(1, round(block.count * min(BLOCK_S / elapsed, 10)))


def names_of(functions):
    return [function.__name__ for function in functions]


def run(twins=(), uneven=(), copies=None):
    """twins: ((block, the same the other way round), (chain, chain)): the two chains do the same
    work, and so each has half of both blocks' time. Alone they would not tell what they take by
    turns, as calls of 50 ns overlap in a CPU. uneven: (block, (chain, chain), their CPU times as
    the block measures them). copies: (n, lines): the copy of that number is shifted by
    number % n * lines."""
    functions = [block for blocks, _ in twins for block in blocks]
    functions += [block for block, _, _ in uneven]
    blocks = [Block(function) for function in functions]
    for block in blocks:
        fit(block)
    turns = schedule_draw(blocks)
    os.set_blocking(target.GO, False)
    target.say(  # -> say
        twins=[(names_of(turns), names_of(chains)) for turns, chains in twins],
        copies=copies,
    )
    rounds(turns)  # -> rounds
    target.say(  # -> say
        result=42,
        times={block.function.__name__: block.seconds for block in blocks},
        uneven=[
            (block.__name__, dict(zip(names_of(chains), seconds)))
            for block, chains, seconds in uneven
        ],
    )


def schedule_draw(blocks):
    """Which blocks in turn, and how much of each: in step with no scheduler."""
    draw = random.Random(os.getpid())
    turns = [
        (block, max(1, round(block.count * draw.uniform(0.5, 1.5)))) for block in blocks * TURNS
    ]
    draw.shuffle(turns)
    return turns


def rounds(turns):
    while not is_over():  # -> is_over
        for block, count in turns:
            start = clock()
            block.function(count)  # -> block_*
            block.seconds += clock() - start
