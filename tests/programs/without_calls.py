"""Runs a command under a seccomp filter that refuses process_vm_readv and ptrace, as some container
runtimes do: `without_calls.py COMMAND ARGUMENTS...`."""

import ctypes
import os
import platform
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD_WORD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 1  # SECCOMP_RET_ALLOW; SECCOMP_RET_ERRNO with EPERM
REFUSED = {"x86_64": (101, 310), "aarch64": (117, 270)}[platform.machine()]


def filter_program():
    """One instruction each: load the call's number, refuse the two, allow the others."""
    rows = [(LOAD_WORD, 0, 0, 0)]
    for number in REFUSED:
        rows += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE)]
    rows.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("HBBI", *row) for row in rows), len(rows)


def main():
    libc = ctypes.CDLL(None, use_errno=True)
    code, count = filter_program()
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", count, ctypes.addressof(buffer))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs")
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
