#!/usr/bin/env python3
"""Fails on a file that does not fit the house: a name at the top that is not one of the fixed ones,
no opening comment or one of more than eight lines, more than 500 lines, tabs, trailing space; and,
where no formatter looks after it, on lines of more than 100 columns."""

import pathlib
import re
import subprocess
import sys

TOP_LEVEL = {"CMakeLists.txt", "sampler", "symbols", "pyabi", "output", "tests", "cmake",
             "README.md", "LICENSE", "CONTRIBUTING.md", "pyproject.toml"}
DATA = ("tests/fuzz/corpus/", "tests/golden/", "tests/snapshots/images/", "tests/streams/")

# How a source file opens, by suffix; a script without suffix is known by its first line.
BLOCK = re.compile(r"/\*(.*?)\*/", re.DOTALL)
DOCSTRING = re.compile(r'"""(.*?)"""', re.DOTALL)
HASHES = re.compile(r"((?:#.*\n)+)")
OPENINGS = {".c": BLOCK, ".h": BLOCK, ".def": BLOCK, ".ts": BLOCK, ".py": DOCSTRING,
            ".cmake": HASHES, ".txt": HASHES, ".toml": HASHES,
            "#!python3": DOCSTRING, "#!bash": HASHES}
LINES, OPENING_LINES, COLUMNS = 500, 8, 100


def list_files(top):
    """Paths of what git tracks or would track: built things are not judged."""
    listed = subprocess.run(["git", "-C", str(top), "ls-files", "-co", "--exclude-standard"],
                            check=True, capture_output=True, text=True).stdout.splitlines()
    return [path for path in listed if (top / path).is_file()]


def find_kind(path, text):
    """The key into OPENINGS, or None for prose and data."""
    shebang = re.match(r"#!.*[/ ](\w+)\n", text)
    kind = "#!" + shebang[1] if shebang else pathlib.PurePath(path).suffix
    return kind if kind in OPENINGS else None


def check_opening(kind, text, has_header):
    """A source needs no opening of its own when a header of its name says it all."""
    body = re.sub(r"\A#!.*\n", "", text)
    opening = OPENINGS[kind].match(body)
    if not opening:
        if not has_header:
            yield "has no opening comment"
    elif len(opening[1].strip().splitlines()) > OPENING_LINES:
        yield f"its opening comment has more than {OPENING_LINES} lines"


def check_lines(kind, text):
    lines = text.splitlines()
    if len(lines) > LINES:
        yield f"has {len(lines)} lines, more than {LINES}"
    for number, line in enumerate(lines, 1):
        if "\t" in line:
            yield f"line {number}: a tab"
        if line != line.rstrip():
            yield f"line {number}: trailing space"
        if OPENINGS[kind] is not BLOCK and len(line) > COLUMNS:
            yield f"line {number}: {len(line)} columns"


def check(path, text, paths=()):
    """Complaints about one file; `paths` are all there are."""
    first = path.split("/")[0]
    if first not in TOP_LEVEL and not first.startswith("."):
        yield f"{path}: {first} is not one of the fixed names at the top"
    kind = find_kind(path, text)
    if kind and not path.startswith(DATA):
        has_header = path.endswith(".c") and path[:-1] + "h" in paths
        for complaint in (*check_opening(kind, text, has_header), *check_lines(kind, text)):
            yield f"{path}: {complaint}"


def main():
    top = pathlib.Path(sys.argv[1])
    paths = set(list_files(top))
    complaints = [complaint for path in sorted(paths)
                  for complaint in check(path, (top / path).read_text(errors="replace"), paths)]
    print("\n".join(complaints) or f"{len(paths)} files fit the house")
    return 1 if complaints or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
