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
        self.function, self.count, self.turns = function, 1, []


class Turn:
    """A piece of a block: how often it is called in one go, and what that took in all."""

    def __init__(self, block, count):
        self.block, self.count, self.calls, self.seconds = block, count, 0, 0.0
        block.turns.append(self)


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
    """twins: ((block, the same the other way round), (chain, chain)): the first block calls one
    chain, the other, and the one again, the second block the other twice. So their times tell
    what each chain takes by turns with the other: alone it would take less, as calls of 50 ns
    overlap in a CPU, and as the same code is not equally fast at every address, two chains that do
    the same work may differ by some per cent. uneven: (block, (chain, chain), their CPU times as
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
    times = {
        block.function.__name__: [(turn.calls, turn.seconds) for turn in block.turns]
        for block in blocks
    }
    target.say(  # -> say
        result=42,
        times={name: sum(seconds for _, seconds in turns) for name, turns in times.items()},
        turns=times,
        uneven=[
            (block.__name__, dict(zip(names_of(chains), seconds)))
            for block, chains, seconds in uneven
        ],
    )


def schedule_draw(blocks):
    """Which blocks in turn, and how much of each: in step with no scheduler."""
    draw = random.Random(os.getpid())
    turns = [
        Turn(block, max(1, round(block.count * draw.uniform(0.5, 1.5)))) for block in blocks * TURNS
    ]
    draw.shuffle(turns)
    return turns


def rounds(turns):
    while not is_over():  # -> is_over
        for turn in turns:
            start = clock()
            turn.block.function(turn.count)  # -> block_*
            turn.seconds += clock() - start
            turn.calls += turn.count
