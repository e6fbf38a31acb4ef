"""What the oracle's programs share. A program runs blocks in turn, each about as long as the others: a mixed block
calls its adversaries by turns, one alone tells how long one adversary takes. The CPU time of all is added up: that
is what shares of samples are compared with. Each loop in a block ends in `_ = 0`, or the jump back would have the
line of the last call and that call a larger share.

Which stacks can exist is written beside the code: `# -> f, g` says who may be called from that line, `# root` where a
thread may begin. Programs keep to functions at the top of the file, each with a name of its own."""

import os
import time

import target

BLOCK_S = 0.001
ALONE_EVERY = 4  # rounds


class Block:
    def __init__(self, function):
        self.function, self.count, self.units, self.seconds = function, 1, 0, 0.0


def is_over():
    try:
        return os.read(target.GO, 1) == b""
    except BlockingIOError:
        return False


def fit(block):
    """How often it calls its adversaries, so that all blocks take the same time: a thread can be stopped at the end
    of a system call rather than a moment later, so that what follows the clock's calls loses a little."""
    elapsed = 0
    while elapsed < BLOCK_S / 2:
        start = time.thread_time()
        block.function(block.count)
        elapsed = time.thread_time() - start
        block.count = max(1, round(block.count * min(BLOCK_S / elapsed, 10)))


def block_loop(count):
    """What a loop costs without a call."""
    for _ in range(count):
        _ = 0


def run(mixed, copies=0):
    """`mixed`: {block: {function that it calls: block that calls that one alone}}."""
    alone = [one for parts in mixed.values() for one in parts.values()]
    often = [Block(function) for function in mixed]
    blocks = [*often, *map(Block, [*alone, block_loop])]
    for block in blocks:
        fit(block)
    os.set_blocking(target.GO, False)
    parts = {
        function.__name__: {name: one.__name__ for name, one in chains.items()}
        for function, chains in mixed.items()
    }
    target.say(parts=parts, copies=copies)  # -> say
    rounds(often, blocks)  # -> rounds
    times = {block.function.__name__: (block.seconds, block.units) for block in blocks}
    target.say(result=42, times=times)  # -> say


def rounds(often, blocks):
    clock = time.thread_time
    turn = 0
    while not is_over():  # -> is_over
        turn += 1
        for block in often if turn % ALONE_EVERY else blocks:
            start = clock()
            block.function(block.count)  # -> block_*
            block.seconds += clock() - start
            block.units += block.count
