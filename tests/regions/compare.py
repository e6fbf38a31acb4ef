#!/usr/bin/env python3
"""Our regions, functions and imports against Scalene's own finders, Python's compiler and ast, for
every line of the golden sources and of a sample of every interpreter's standard library; with
--write, what those say of the golden sources becomes their golden text. 77: there is no virtual
environment with Scalene (cmake/scalene makes it)."""

import argparse
import ast
import json
import os
import pathlib
import subprocess
import sys
import types
import warnings
from itertools import zip_longest

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
PYTHON = CACHE / "scalene-attach" / "scalene-venv" / "bin" / "python"
GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "regions"
FILES_EACH, FILES_AT_LEAST = 8, 60

# Differences that are known, by the name of the source.
KNOWN = {
    "test_compile.py": "has lines in brackets that stand left of their block, behind a dot; for "
                       "the grammar those end the block",
}

# For the name of a function for which there is no code, as under `if 0:`.
NOT_COMPILED = "?"

try:
    from scalene.scalene_analysis import ScaleneAnalysis
except ImportError:
    if PYTHON.exists() and sys.prefix != str(PYTHON.parent.parent):
        os.execv(PYTHON, [str(PYTHON), "-B", *sys.argv])
    print(f"skipped: no Scalene in {PYTHON.parent.parent}")
    sys.exit(77)


def find_sources(python, root):
    """A sample of its standard library and that library's tests, of every size."""
    text = subprocess.run([*(("chroot", root) if root else ()), python, "-ISc",
                           "import os; print(os.path.dirname(os.__file__))"],
                          check=True, capture_output=True, text=True).stdout.strip()
    folder = pathlib.Path((root or "") + text)
    files = [*folder.glob("*.py"), *folder.glob("asyncio/*.py"), *folder.glob("test/test_*.py")]
    files = [path for path in files
             if path.is_file() and not path.is_symlink() and path.name not in KNOWN]
    files.sort(key=lambda path: (path.stat().st_size, path.name))
    return files[::-max(1, len(files) // FILES_EACH)]


def read(path):
    """Its text, or None for what the Python that we run in cannot read."""
    try:
        text = path.read_text(encoding="utf-8")
        ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    return text


def expect_lines(text):
    finders = (ScaleneAnalysis.find_regions, ScaleneAnalysis.find_outermost_loop,
               ScaleneAnalysis.find_functions)
    region, loop, function = (find(text) for find in finders)
    for number in range(1, len(text.split("\n")) + (not text.endswith("\n"))):
        yield "line %d: region %d-%d loop %d-%d function %d-%d" % (
            number, *region[number], *loop[number], *function[number])


def find_codes(code):
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from find_codes(constant)


def expect_functions(text, tree):
    """In the order of the source."""
    codes = find_codes(compile(text, "source", "exec", dont_inherit=True))
    names = {(code.co_name, code.co_firstlineno): code.co_qualname for code in codes}
    functions = [node for node in ast.walk(tree)
                 if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    for node in sorted(functions, key=lambda node: (node.lineno, node.col_offset)):
        word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
        first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
        name = names.get((node.name, first), NOT_COMPILED)
        decorators = "".join(f" @{ast.get_source_segment(text, decorator)}"
                             for decorator in node.decorator_list)
        yield f"{word} {name}: from {first}, {node.lineno}-{node.end_lineno}{decorators}"


def expect_imports(tree):
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    for node in sorted(imports, key=lambda node: (node.lineno, node.col_offset)):
        yield f"line {node.lineno}: {ast.unparse(node)}"


def expect(text):
    tree = ast.parse(text)
    lines = [*expect_lines(text), *expect_functions(text, tree), *expect_imports(tree)]
    return "".join(f"{line}\n" for line in lines)


def compare(path, text, found):
    for ours, theirs in zip_longest(found.splitlines(), expect(text).splitlines()):
        if ours and theirs and f"def {NOT_COMPILED}:" in theirs:
            ours, theirs = (line.partition(": ")[2] for line in (ours, theirs))
        if ours != theirs:
            yield f"{path}: {ours}; Scalene: {theirs}"


def write_golden():
    for path in GOLDEN.glob("*.py"):
        path.with_suffix(".txt").write_text(expect(path.read_text()))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("program", nargs="?", help="print_regions")
    parser.add_argument("interpreters", nargs="?", type=pathlib.Path,
                        help="list of cmake/interpreters")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.write:
        return write_golden()

    files = [*GOLDEN.glob("*.py")]
    for row in json.loads(options.interpreters.read_text()):
        files += find_sources(row["python"], row["root"])
    texts = [(path, text) for path in files if (text := read(path)) is not None]
    printed = subprocess.run([options.program], input="".join(f"{path}\n" for path, _ in texts),
                             check=True, capture_output=True, text=True).stdout
    complaints = [complaint
                  for (path, text), found in zip(texts, printed.split("\n\n")[:-1], strict=True)
                  for complaint in compare(path, text, found)]
    for name, reason in KNOWN.items():
        print(f"left out: {name}: {reason}")
    print(*complaints[:50], sep="\n")
    print(f"{len(texts)} files, {len(complaints)} differences")
    return 1 if complaints or len(texts) < FILES_AT_LEAST else 0


if __name__ == "__main__":
    sys.exit(main())
