"""No skip is lost: cmake/skipped, given what ctest logs of tests of every tier."""

import pathlib
import subprocess
import tempfile
import unittest

SKIPPED = pathlib.Path(__file__).resolve().parents[2] / "cmake" / "skipped"

LOG = """
1/9 Testing: unit.threads
[==========] Running 3 test(s).
[ RUN      ] test_good
[       OK ] test_good
[ RUN      ] test_of_root
skipped: needs root
[  SKIPPED ] test_of_root
[ RUN      ] test_silent
[  SKIPPED ] test_silent
[  SKIPPED ] 2 test(s), listed below:
[  SKIPPED ] test_of_root
[  SKIPPED ] test_silent
2/9 Testing: attach.find.3.8
test_container (__main__.Roots.test_container) ... skipped 'needs unshare'
OK (skipped=1)
skipped: Roots.test_container: needs unshare [pyenv]
3/9 Testing: attach.find.3.15
skipped: Roots.test_container: needs unshare [pyenv]
10/9 Testing: attach.3.14t
skipped: no CPython 3.14t on this machine
"""


class Skipped(unittest.TestCase):
    def test_every_tier(self):
        with tempfile.TemporaryDirectory() as folder:
            for preset, text in (("release", LOG), ("fuzz", "1/1 Testing: fuzz.maps\nfine\n")):
                log = pathlib.Path(folder, preset, "LastTest.log")
                log.parent.mkdir()
                log.write_text(text)
            done = subprocess.run([SKIPPED, "release/LastTest.log", "fuzz/LastTest.log"],
                                  cwd=folder, check=True, capture_output=True, text=True)
        self.assertEqual(sorted(line.strip() for line in done.stdout.splitlines()), [
            "Roots.test_container: needs unshare [pyenv] (release attach.find.3.8, "
            "release attach.find.3.15)",
            "no CPython 3.14t on this machine (release attach.3.14t)",
            "test_of_root: needs root (release unit.threads)",
            "test_silent: gives no reason (release unit.threads)",
        ])

    def test_no_log(self):
        done = subprocess.run([SKIPPED, "/dev/null/LastTest.log"], capture_output=True)
        self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
