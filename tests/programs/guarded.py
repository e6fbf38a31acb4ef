"""Targets that the kernel guards: another user's, not dumpable, with more capabilities than we
have."""

import ctypes
import os

import target

PR_SET_DUMPABLE, PR_SET_KEEPCAPS = 4, 8
NOBODY = 65534


def prctl(option, value):
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def become_nobody():
    """The kernel makes a process that changed its user undumpable."""
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def nobodys():
    become_nobody()
    prctl(PR_SET_DUMPABLE, 1)
    return target.park()


def undumpable():
    become_nobody()
    prctl(PR_SET_DUMPABLE, 0)
    return target.park()


def capable():
    prctl(PR_SET_KEEPCAPS, 1)
    become_nobody()
    prctl(PR_SET_DUMPABLE, 1)
    return target.park()


CASES = {"nobodys": nobodys, "undumpable": undumpable, "capable": capable}

if __name__ == "__main__":
    target.run(CASES)
