"""Targets that do not stand still while they are looked at: they end, or become another program."""

import os
import select
import sys

import target


def executes():
    """Becomes itself again and again until it is let go; the last of all reports the result."""
    if "begun" not in os.environ:
        os.environ["begun"] = "1"
        target.say(pid=os.getpid())
    if not select.select([target.GO], [], [], 0)[0]:
        os.execv(sys.executable, [sys.executable, __file__, "executes"])
    return 42


CASES = {"executes": executes}

if __name__ == "__main__":
    target.run(CASES)
