#!/usr/bin/env python3
"""Pages in a browser: they open from their files without a complaint, show as many lines as the
profile has and every column, with the terminal's words for a value, and texts that were chosen to
spoil them stay texts. 77 says: there is no browser."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from pages import (FORMATS, PROFILES, SCRIPTS, SPOILT, Page, golden_text, hot_profile, run,
                   spoilt_profile, whole_profile)

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)

# What the browser itself says of the machine it runs on is not about the page.
COMPLAINT = ":CONSOLE"


def open_page(path, profile, fragment=""):
    """The page as the browser has it once its script ran, and what it complained of."""
    options = ("--headless", "--disable-gpu", "--enable-logging=stderr", "--dump-dom",
               f"--user-data-dir={profile}", *(["--no-sandbox"] if os.getuid() == 0 else []))
    done = subprocess.run([BROWSER, *options, path.as_uri() + fragment], capture_output=True,
                          text=True, check=True, timeout=120)
    complaints = [line for line in done.stderr.splitlines() if COMPLAINT in line]
    return Page(done.stdout), complaints


class BrowserTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def shown(self, text, option, fragment=""):
        (self.folder / "p.json").write_text(text)
        run("view", option, "p.json", folder=self.folder)
        page, complaints = open_page(self.folder / "p.html", self.folder / "browser", fragment)
        self.assertEqual(complaints, [])
        return page

    def check_rows(self, page, profile):
        files = profile["files"].values()
        self.assertEqual(page.rows.get("lines", 0), sum(len(file["lines"]) for file in files))
        self.assertEqual(page.rows.get("functions", 0),
                         sum(len(file["functions"]) for file in files))

    def test_profiles(self):
        for option in ("--html", "--standalone"):
            for name in PROFILES:
                text = golden_text(name)
                profile = json.loads(text)
                page = self.shown(text, option)
                self.check_rows(page, profile)
                self.assertLessEqual(page.keys, {column["key"] for column in profile["columns"]})
                self.assertIn("n_cpu_percent_python", page.keys)

    def test_every_column(self):
        """Where a line has something in each; those that a program draws or jumps with when they
        are asked for."""
        profile = whole_profile()
        keys = {column["key"] for column in profile["columns"]}
        for_programs = {column["key"] for column in profile["columns"]
                        if column["group"] == "region" or column["kind"] == "moments"}
        self.assertEqual(len(for_programs), 7)
        text = json.dumps(profile)
        self.assertEqual(self.shown(text, "--standalone").keys, keys - for_programs)
        self.assertEqual(self.shown(text, "--standalone", "#all").keys, keys)

    def test_texts_of_values(self):
        rows = [line.split("\t") for line in FORMATS.read_text().splitlines()]
        exact = [row for row in rows if not row[1].isdigit() or int(row[1]) < 2 ** 53]
        self.assertGreater(len(exact), 100)
        values = ", ".join(f'["{kind}", {value}]' for kind, value, _ in exact)
        path = self.folder / "kinds.html"
        path.write_text(f'''<!DOCTYPE html><meta charset="utf-8"><main id="page"></main>
<script type="application/json" id="data">[{values}]</script>
<script>{(SCRIPTS / "text.js").read_text()}
for (const [kind, value] of data)
    page.append(element("code", {{ textContent: format(kind, value) }}));
</script>''')
        page, complaints = open_page(path, self.folder / "browser")
        self.assertEqual(complaints, [])
        for (kind, value, text), got in zip(exact, page.codes, strict=True):
            self.assertEqual(got, text, (kind, value))

    def test_spoilt(self):
        profile = spoilt_profile()
        page = self.shown(json.dumps(profile), "--standalone")
        self.check_rows(page, profile)
        self.assertNotEqual(page.title, SPOILT)
        self.assertFalse({"img", "svg", "b"} & {tag for tag, _ in page.elements})
        codes = "".join(page.codes)
        self.assertIn("</script><script>document.title=", codes)
        self.assertIn("\\x1b]0;title\\x07", codes)
        self.assertIn("\\u202eright to left\\u202c", codes)
        for character in "\x1b\x07\u202e\u2028":
            self.assertNotIn(character, codes)

    def test_source_text(self):
        """What a source writes by its code stays so; what the profile wrote so is undone."""
        profile = json.loads(golden_text("shop.json"))
        lines = next(iter(profile["files"].values()))["lines"]
        lines[0]["line"] = 's += len("\\u005cu003cb\\u005cu003e") \\u003c 1  # \\u005cu005c \\n\n'
        page = self.shown(json.dumps(profile), "--standalone")
        self.assertIn('s += len("\\u003cb\\u003e") < 1  # \\u005c \\n', page.codes)

    def test_without_our_keys(self):
        """Scalene's own profiles tell no columns."""
        profile = json.loads(golden_text("shop.json"))
        for key in ("columns", "processes", "threads", "sampling", "totals", "notes", "profiler"):
            del profile[key]
        page = self.shown(json.dumps(profile), "--standalone")
        self.check_rows(page, profile)
        self.assertEqual(set(json.loads(page.data)), set(profile) | {"columns"})
        for word in ("dropped", "Hz", "pauses", "growth", "undefined", "NaN"):
            self.assertNotIn(word, page.facts)
        profile["sampling"], profile["memory"] = {"samples": 5, "paused_s": "long"}, True
        for key in ("max_footprint_mb", "samples"):
            del profile[key]
        for file in profile["files"].values():
            del file["percent_cpu_time"]
        page = self.shown(json.dumps(profile), "--standalone")
        self.assertEqual(page.facts.split("\n")[-3:-1], ["5", "growth rate 0%"])
        self.assertFalse([text for text in page.summaries if "of the time" in text])
        self.assertIn("the first one of paused_s", "".join(page.items))

    def test_hot(self):
        """The same rows as in the terminal."""
        profile, hot = hot_profile()
        page = self.shown(json.dumps(profile), "--standalone")
        self.assertEqual(page.hot, {("lines", number) for number in hot})
        table = subprocess.run([os.environ["SCALENE_ATTACH"], "view", "--cli", "p.json"],
                               cwd=self.folder, capture_output=True, text=True, check=True,
                               env={**os.environ, "CLICOLOR_FORCE": "1"}).stdout
        (file,) = profile["files"].values()
        self.assertEqual(len(re.findall(r"x\d+ = ", table)), len(file["lines"]))
        red = re.findall(r"\x1b\[1;31mx(\d+) = 1", table)
        self.assertEqual({int(number) for number in red}, hot)

    def test_head(self):
        """What ran, and how it was looked at, stands above the tables."""
        page = self.shown(golden_text("memory.json"), "--standalone")
        for word in ("python3 main.py", "3.12.1", "250ms", "0 dropped", "in 2 pauses",
                     "67.0M at most, growth rate 26.6%", "1 in 2 processes"):
            self.assertIn(word, page.facts)

    def test_diff(self):
        for name in ("shop.json", "merged.json"):
            (self.folder / name).write_text(golden_text(name))
        run("diff", "--html", "shop.json", "merged.json", folder=self.folder)
        page, complaints = open_page(self.folder / "merged-diff.html", self.folder / "browser")
        self.assertEqual(complaints, [])
        compared = json.loads(page.data)
        changed = [row for row in compared["lines"] if row["changes"].get("time", {}).get("change")]
        self.assertEqual(page.rows["lines"], len(changed))
        self.assertGreater(len(changed), 0)


if __name__ == "__main__":
    if not BROWSER:
        print("skipped: no chromium in the PATH")
        sys.exit(77)
    unittest.main()
