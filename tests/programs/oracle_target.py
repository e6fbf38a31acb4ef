"""What the oracle's programs share. A program is a round of blocks, functions named block_*, each of which runs one
adversary for a short while; the CPU time of each is added up, which is what its share of the samples is compared with.

Which stacks can exist is written beside the code: `# -> f, g` says who may be called from that line, `# root` where a
thread may begin. Programs keep to functions at the top of the file, each with a name of its own."""

import os
import time

import target


def is_over():
    try:
        return os.read(target.GO, 1) == b""
    except BlockingIOError:
        return False


def run(blocks, twins=(), copies=0):
    """`twins` do equal work by construction; `copies`: by how many lines copied code may be shifted."""
    totals = {block.__name__: 0.0 for block in blocks}
    os.set_blocking(target.GO, False)
    target.say(twins=twins, copies=copies)  # -> say
    rounds(blocks, totals)  # -> rounds
    target.say(result=42, totals=totals)  # -> say


def rounds(blocks, totals):
    clock = time.thread_time
    while not is_over():  # -> is_over
        for block in blocks:
            start = clock()
            block()  # -> block_*
            totals[block.__name__] += clock() - start
