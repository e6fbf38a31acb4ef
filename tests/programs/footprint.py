"""Touches a table, forks a child that shares it and one that rewrites half of it; all stand still
and have written who is who."""

import os

import target

MEBI = 1 << 20
TABLE = 96 * MEBI
PAGE = 4096


def main():
    table = bytearray(b"x") * TABLE
    pids = {}
    for name, rewritten in ("reader", 0), ("writer", TABLE // 2):
        told, tell = os.pipe()
        pids[name] = os.fork()
        if not pids[name]:
            for at in range(0, rewritten, PAGE):
                table[at] = 1
            os.write(tell, b".")
            target.wait_for_go()
            os._exit(0)
        os.read(told, 1)
    target.say(pids=pids, table=TABLE)
    target.wait_for_go()
    for pid in pids.values():
        os.waitpid(pid, 0)
    target.say(result=42)


main()
