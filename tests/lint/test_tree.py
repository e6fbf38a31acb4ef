#!/usr/bin/env python3
"""The tree lint catches what it is there to catch."""

import unittest

from tree import check

SOUND = {
    "pyabi/a.c": "/* What it owns. */\nint a;\n",
    "tests/a.py": '#!/usr/bin/env python3\n"""What it owns,\nin two lines."""\n',
    "cmake/a.cmake": "# What it owns.\nset(a b)\n",
    "cmake/setup": "#!/usr/bin/env bash\n# What it owns.\ntrue\n",
    "README.md": "prose " * 40 + "\n",
    "tests/fuzz/corpus/maps/a.c": "\t \n",
    ".ci/run": "#!/usr/bin/env bash\n# What it owns.\n",
}


class TreeTest(unittest.TestCase):
    def test_sound_files(self):
        for path, text in SOUND.items():
            with self.subTest(path=path):
                self.assertEqual(list(check(path, text)), [])

    def assert_one(self, path, text, word):
        complaints = list(check(path, text))
        self.assertEqual(len(complaints), 1, complaints)
        self.assertIn(word, complaints[0])

    def test_top_level(self):
        self.assert_one("util/a.c", SOUND["pyabi/a.c"], "fixed names")
        self.assert_one("notes.md", "prose\n", "fixed names")

    def test_opening(self):
        self.assert_one("pyabi/a.c", "int a;\n", "no opening comment")
        self.assert_one("tests/a.py", "import os\n", "no opening comment")
        self.assert_one("cmake/setup", "#!/usr/bin/env bash\ntrue\n", "no opening comment")
        self.assert_one("pyabi/a.c", "/*\n" + " * x\n" * 9 + " */\n", "more than 8")

    def test_a_header_opens_its_source(self):
        self.assertEqual(list(check("pyabi/a.c", "int a;\n", {"pyabi/a.h"})), [])
        self.assertEqual(len(list(check("pyabi/a.c", "int a;\n", {"pyabi/b.h", "a.h"}))), 1)
        self.assertEqual(len(list(check("pyabi/a.h", "int a;\n", {"pyabi/a.h"}))), 1)

    def test_lines(self):
        self.assert_one("pyabi/a.c", SOUND["pyabi/a.c"] + "int b;\n" * 500, "502 lines")
        self.assert_one("pyabi/a.c", SOUND["pyabi/a.c"] + "\tint b;\n", "tab")
        self.assert_one("pyabi/a.c", SOUND["pyabi/a.c"] + "int b; \n", "trailing")
        self.assert_one("tests/a.py", SOUND["tests/a.py"] + "#" * 101 + "\n", "101 columns")


if __name__ == "__main__":
    unittest.main()
