#!/usr/bin/env python3
"""Pages as text: the data in them is the profile's, the policy names the hashes of the scripts that
are there and no others, and nothing of a profile becomes an element."""

import base64
import hashlib
import json
import pathlib
import tempfile
import unittest

from pages import PROFILES, SPOILT, Page, golden_text, run, spoilt_profile


def hash_of(text):
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


class PagesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def page_of(self, text, option):
        (self.folder / "p.json").write_text(text)
        told = run("view", option, "p.json", folder=self.folder)
        self.assertIn("scalene-attach: page saved to p.html\n", told)
        return Page((self.folder / "p.html").read_text())

    def check_policy(self, page):
        self.assertEqual(len(page.scripts), 2)
        self.assertEqual(len(page.styles), 1)
        self.assertIn(f"script-src {' '.join(map(hash_of, page.scripts))}", page.policy)
        self.assertIn(f"style-src {hash_of(page.styles[0])}", page.policy)
        self.assertIn("default-src 'none'", page.policy)
        self.assertNotIn("unsafe", page.policy)

    def test_data_is_the_profile(self):
        for name in PROFILES:
            text = golden_text(name)
            page = self.page_of(text, "--standalone")
            self.assertEqual(json.loads(page.data), json.loads(text))
            self.check_policy(page)

    def test_spoilt(self):
        page = self.page_of(json.dumps(spoilt_profile()), "--standalone")
        self.check_policy(page)
        found = {tag for tag, _ in page.elements}
        self.assertEqual(found, {"html", "head", "meta", "title", "style", "body", "main",
                                 "noscript", "script"})
        self.assertIn(SPOILT, page.title)
        for character in "<>&\u2028\u2029\x1b":
            self.assertNotIn(character, page.data)
        self.assertEqual(len(json.loads(page.data)["files"]), len(spoilt_profile()["files"]))

    def test_beside(self):
        page = self.page_of(golden_text("shop.json"), "--html")
        wanted = [attributes.get("src") or attributes.get("href") for tag, attributes
                  in page.elements if tag in ("script", "link") and "type" not in attributes]
        self.assertEqual(len(wanted), 3)
        for name in wanted:
            self.assertTrue((self.folder / name).stat().st_size > 100, name)
        self.assertFalse("".join(page.scripts).strip())

    def test_diff(self):
        for name in ("shop.json", "merged.json"):
            (self.folder / name).write_text(golden_text(name))
        told = run("diff", "--html", "shop.json", "merged.json", folder=self.folder)
        self.assertIn("scalene-attach: comparison saved to merged-diff.html\n", told)
        page = Page((self.folder / "merged-diff.html").read_text())
        self.check_policy(page)
        self.assertEqual(json.loads(page.data)["old"]["name"], "shop.json")

    def test_export(self):
        (self.folder / "p.json").write_text(golden_text("shop.json"))
        told = run("export", "-o", "x.html", "p.json", folder=self.folder)
        self.assertIn("scalene-attach: page saved to x.html\n", told)
        run("export", "-f", "standalone", "-o", "y.html", "p.json", folder=self.folder)
        told = run("export", "-f", "cli", "-o", "y.txt", "p.json", folder=self.folder)
        self.assertIn("scalene-attach: table saved to y.txt\n", told)
        told = run("export", "-o", "y.folded", "p.json", folder=self.folder)
        self.assertIn("scalene-attach: profile saved to y.folded\n", told)
        self.assertTrue((self.folder / "scalene-attach-profile.js").exists())
        self.check_policy(Page((self.folder / "y.html").read_text()))
        self.assertEqual(Page((self.folder / "x.html").read_text()).data,
                         Page((self.folder / "y.html").read_text()).data)


if __name__ == "__main__":
    unittest.main()
