"""What every shell must complete, told once; a shell's test says how to ask it."""

import os
import pathlib
import shutil
import sys
import unittest

DOCUMENTS = pathlib.Path(os.environ["SCALENE_DOCUMENTS"])  # where the build wrote them

# What stands on the line, and some of what must and must not be offered behind it.
CASES = [
    ("scalene-attach vi", {"view"}, {"run", "--pid"}),
    ("scalene-attach --out", {"--output", "--outfile"}, {"--cli", "--json"}),
    ("scalene-attach --no-sub", {"--no-subprocesses"}, {"--subprocesses"}),
    ("scalene-attach view --re", {"--reduced"}, {"--rate", "--record"}),
    ("scalene-attach dump --na", {"--native"}, {"--no-native"}),
    ("scalene-attach run --format c", {"cli"}, {"json"}),
    ("scalene-attach dump --find s", {"symbol", "section", "scan"}, {"cookie"}),
    ("scalene-attach document z", {"zsh"}, {"man"}),
    ("scalene-attach view prof", {"profile one.json"}, {"view"}),
    ("scalene-attach run --program-path fol", {"folder/"}, {"--output"}),
]


def need(program):
    """Its path; without it the test is skipped by name."""
    path = shutil.which(program)
    if not path:
        print(f"skipped: no {program} here")
        sys.exit(77)
    return path


def make_files(folder):
    (folder / "profile one.json").write_text("{}")
    (folder / "folder").mkdir()


class Completions(unittest.TestCase):
    def check(self, ask):
        """`ask` gives the set of words offered behind a line."""
        for line, wanted, unwanted in CASES:
            with self.subTest(line=line):
                offered = ask(line)
                self.assertLessEqual(wanted, offered)
                self.assertFalse(unwanted & offered)
