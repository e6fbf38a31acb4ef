"""The man page as man and groff read it: no complaint, and nothing wider than the page."""

import os
import re
import subprocess
import unittest

import shells

PAGE = shells.DOCUMENTS / "scalene-attach.1"
PLAIN = {**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80", "MAN_KEEP_FORMATTING": ""}


def rendered(command):
    answer = subprocess.run(command, env=PLAIN, check=True, capture_output=True, text=True)
    return answer.stdout, answer.stderr


class ManPage(unittest.TestCase):
    def test_groff(self):
        groff = shells.need("groff")
        for device in ("utf8", "ascii", "ps"):
            self.assertEqual(rendered([groff, "-ww", "-man", f"-T{device}", str(PAGE)])[1], "")

    def test_man(self):
        man = shells.need("man")
        text, complaints = rendered([man, "--warnings", "-l", str(PAGE)])
        self.assertEqual(complaints, "")
        text = re.sub(r".\x08|\x1b\[[0-9;]*m", "", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        for heading in ("NAME", "SYNOPSIS", "OPTIONS", "CONFIGURATION", "EXIT STATUS"):
            self.assertIn(f"\n{heading}\n", text)
        self.assertIn("--allocation-sampling-window B", text)
        self.assertIn("less -R", text)


if __name__ == "__main__":
    unittest.main()
