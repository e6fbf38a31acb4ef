#!/usr/bin/env python3
"""Fails on an #include that the table in layers.txt does not allow. Our own headers are included by
their path from the top of the tree, which is what makes this check, and a reader's, possible."""

import pathlib
import re
import sys

from tree import list_files

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
SUFFIXES = {".c", ".h", ".def"}


def read_table(text):
    """{module: what it may include}, in the table's order."""
    rows = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return {module: set(allowed) for module, *allowed in rows}


def find_module(table, path):
    """The module that a path belongs to, or None."""
    return next((module for module in table if path.startswith(module + "/")), None)


def judge(table, path, bracket, target):
    """What is wrong with `path` including `target`, or None."""
    module = find_module(table, path)
    if module is None:
        return f"{path}: stands in no module of the table"
    allowed = table[module] | {module}
    if "*" in allowed:
        return None
    if bracket == "<":
        return f"{path}: {module} must not know <{target}>" if "!" + target in allowed else None
    included = find_module(table, target)
    if included is None:
        return f"{path}: \"{target}\" is not a path from the top into a module"
    if allowed & {included, target}:
        return None
    return f"{path}: {module} may not include {target}"


def check(table, sources):
    """`sources` is {path: text}; returns the complaints."""
    verdicts = [judge(table, path, *include)
                for path, text in sources.items() for include in INCLUDE.findall(text)]
    return [verdict for verdict in verdicts if verdict]


def main():
    top = pathlib.Path(sys.argv[1])
    table = read_table(pathlib.Path(__file__).with_name("layers.txt").read_text())
    sources = {path: (top / path).read_text() for path in list_files(top)
               if pathlib.Path(path).suffix in SUFFIXES}
    complaints = check(table, sources)
    print("\n".join(complaints) or f"{len(sources)} files keep to the table")
    return 1 if complaints or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
