"""Completion in fish itself, which prints what it would offer."""

import pathlib
import shlex
import subprocess
import tempfile
import unittest

import shells


def ask(line, folder, fish):
    script = (f"source {shlex.quote(str(shells.DOCUMENTS / 'scalene-attach.fish'))}; "
              f"and complete -C {shlex.quote(line)}")
    answer = subprocess.run([fish, "--no-config", "-c", script], cwd=folder, check=True,
                            capture_output=True, text=True)
    if answer.stderr:
        raise AssertionError(answer.stderr)
    return {row.split("\t")[0].replace("\\ ", " ") for row in answer.stdout.splitlines()}


class Fish(shells.Completions):
    def test_offered(self):
        fish = shells.need("fish")
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            shells.make_files(folder)
            self.check(lambda line: ask(line, folder, fish))


if __name__ == "__main__":
    unittest.main()
