"""Completion in bash itself: the function that `complete` was told of is called as bash does."""

import pathlib
import shlex
import subprocess
import tempfile
import unittest

import shells

ASK = """
source {script}
complete -p scalene-attach >/dev/null || exit 3
COMP_WORDS=({words}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_scalene_attach
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def ask(line, folder, bash):
    words = line.split(" ")
    script = ASK.format(script=shlex.quote(str(shells.DOCUMENTS / "scalene-attach")),
                        words=shlex.join(words))
    answer = subprocess.run([bash, "--norc", "-c", script], cwd=folder, check=True,
                            capture_output=True, text=True)
    if answer.stderr:
        raise AssertionError(answer.stderr)
    return {word + "/" if (folder / word).is_dir() else word
            for word in answer.stdout.splitlines() if word}


class Bash(shells.Completions):
    def test_offered(self):
        bash = shells.need("bash")
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            shells.make_files(folder)
            self.check(lambda line: ask(line, folder, bash))
            self.assertEqual(ask("scalene-attach --format = j", folder, bash), {"json"})
            self.assertIn("ls", ask("scalene-attach --quiet -- l", folder, bash))


if __name__ == "__main__":
    unittest.main()
