"""Completion in zsh itself, on a terminal of its own: what is offered is what it lists at a tab."""

import fcntl
import os
import pathlib
import pty
import select
import struct
import tempfile
import termios
import time
import unittest

import shells

# What completion adds is noted on its way, and a key of our own shows it.
SETUP = """
PROMPT='<ready>' LISTMAX=1000
autoload -Uz compinit && compinit -D -u
zstyle ':completion:*' completer _complete
show() { print -rl -- '<begin>' $shown '<end>' }
compadd() {
  local -a found
  [[ ${@[(I)-[OAD]]} -gt 0 ]] || { builtin compadd -O found "$@"; shown+=($found) }
  builtin compadd "$@"
}
ask() { shown=(); zle complete-word; zle -I; show }
zle -N ask
bindkey '^T' ask
source SCRIPT
"""


class Terminal:
    """An interactive zsh that is asked line by line."""

    def __init__(self, zsh, folder):
        (folder / ".zshrc").write_text(
            SETUP.replace("SCRIPT", f"'{shells.DOCUMENTS / '_scalene-attach'}'"))
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("4H", 100, 200, 0, 0))
            os.chdir(folder)
            os.execve(zsh, [zsh, "-i"], {**os.environ, "ZDOTDIR": str(folder), "TERM": "dumb"})
        self.read_until("<ready>")

    def read_until(self, mark):
        text, end = "", time.monotonic() + 30
        while not text or mark not in text:
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"no {mark} in: {text}")
            text += os.read(self.fd, 65536).decode(errors="replace")
        return text

    def ask(self, line):
        """Empties the line first, which also ends what zsh thinks it is in the middle of."""
        os.write(self.fd, b"\x15" + line.encode() + b"\x14")
        text = self.read_until("<end>")
        while "<ready>" not in text[text.index("<end>"):]:  # until then the terminal edits lines
            text += self.read_until("")
        return set(text[text.index("<begin>"):text.index("<end>")].replace("\r", "").split("\n"))

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def plain(word, folder):
    word = word.rstrip("=").replace("\\ ", " ")
    return word + "/" if word and (folder / word).is_dir() else word


class Zsh(shells.Completions):
    def test_offered(self):
        zsh = shells.need("zsh")
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            shells.make_files(folder)
            terminal = Terminal(zsh, folder)
            try:
                self.check(lambda line: {plain(word, folder) for word in terminal.ask(line)})
            finally:
                terminal.close()


if __name__ == "__main__":
    unittest.main()
