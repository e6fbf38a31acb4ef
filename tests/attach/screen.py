"""A terminal of a size of its own for a program's output, and all that was written to it."""

import fcntl
import os
import pty
import select
import struct
import termios


class Screen:
    """`fd` is the side to write to. It stays open until all has been read: a terminal whose last
    writer is gone may say so before it hands out what that one wrote."""

    def __init__(self, columns, lines=50):
        self.leader, self.fd = pty.openpty()
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)
        os.close(self.leader)

    def read(self, child):
        """What was written to it until the child ended."""
        output = b""
        while True:
            ended = child.poll() is not None
            if select.select([self.leader], [], [], 0 if ended else 0.02)[0]:
                output += os.read(self.leader, 65536)
            elif ended:
                return output
