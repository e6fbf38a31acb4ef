"""Line tables and the positions that CPython itself reads from them, as golden text for test_lines.

Run it with the interpreter of the release in question, from any folder:

    PYTHON tests/golden/lines/generate.py > tests/golden/lines/RELEASE.txt

The output depends on the CPython version alone. One code object:

    code NAME FIRST_LINE TABLE_IN_HEX
    OFFSET LINE END_LINE COLUMN END_COLUMN      (from that offset on; columns 1-based, 0 unknown)
    end BYTECODE_SIZE

An instruction without a line counts to the line before it, as lines.h promises. Before 3.11 there are
neither columns nor end lines.
"""

import dis
import subprocess
import sys
import types

SAMPLE = '''\
"""Docstring."""
import sys, \\
    os

def decorated(function):
    return function

@decorated
@(lambda
  f: f)
def decorator_lines(
    a=1,
    b=(2,
       3),
):
    return a + \\
        b

def negative_steps(call):
    return call(
        first(
            1,
            call),
        second
    ).attribute(
        third)[
            call
        ]

def long_gap(x):
    x += 1
GAP
    if x:
GAP
        y = x
    return y

def comprehensions(rows):
    flat = [cell * 2
            for row in rows
            if row
            for cell in row]
    keyed = {key: value for key,
             value in rows}
    return sum(
        x
        for x in flat), {a for a in keyed}

def cleanup(path):
    try:
        with open(path) as file, \\
             open(path) as other:
            return file.read()
    except (OSError,
            ValueError) as error:
        print(error)
        raise RuntimeError from error
    except KeyError:
        pass
    else:
        path = None
    finally:
        for _ in path:
            if _:
                continue
            break
        else:
            path = 1
    while True:
        try:
            break
        finally:
            del path

async def coroutine(things):
    async with things as thing, thing:
        async for x in thing:
            await x
    return [y async for y in thing
            if await y]

def generator(n):
    got = yield n
    yield from generator(
        got)

class Shape(object,
            metaclass=type):
    side: int = 3
    area = property(lambda self: self.side
                    * self.side)

    def grow(self, by=lambda: 1):
        self.side += by(); self.side -= 1; return self

def wide():
    résumé = "日本語"; 名前 = "😀" + résumé; return 名前 + "😀" + résumé
    FAR

def strings(a, b):
    return f"{a!r:>{b}} and {a +
        b if False else b}" if a else (
        "one"
        "two" f"{b}")

def chained(a, b, c):
    assert a < b < c, (
        "no")
    del a; global G; G = b and c or not b
    return (yield_ := a) if (
        b
    ) else [*a, *b, {**c}]
'''
MATCH = '''
def matched(x):
    match x:
        case [1, *rest] if rest:
            return rest
        case {"k": v}:
            return (
                v)
        case _:
            pass
'''


def source():
    text = SAMPLE.replace("GAP", "\n" * 300)
    text = text.replace("FAR", "a = '" + "x" * 150 + "'; print(a, a +\n" + " " * 140 + "a)")
    if sys.version_info < (3, 9):
        text = text.replace("@(lambda\n  f: f)", "@decorated")  # a name or a call
    if sys.version_info < (3, 12):
        text = text.replace("{a +\n        b if", "{a + b if")  # no lines inside of fields
    if sys.version_info >= (3, 10):
        text += MATCH
    return text


def code_objects(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from code_objects(constant)


def lines_by_offset(code):
    """Offset -> line for every code unit, by the reader that the release offers; None: no line."""
    size = len(code.co_code)
    if hasattr(code, "co_lines"):
        lines = [None] * size
        for start, end, line in code.co_lines():
            lines[start:end] = [line] * (end - start)
        return lines
    starts = dict(dis.findlinestarts(code))
    lines, line = [], code.co_firstlineno
    for offset in range(size):
        line = starts.get(offset, line)
        lines.append(line)
    return lines


def positions(code):
    lines = lines_by_offset(code)
    columns = list(code.co_positions()) if hasattr(code, "co_positions") else None
    last = code.co_firstlineno
    for offset in range(0, len(code.co_code), 2):
        line = lines[offset]
        if line is None:
            yield offset, (last, last, 0, 0)
            continue
        last = line
        if columns is None:
            yield offset, (line, line, 0, 0)
            continue
        start_line, end_line, column, end_column = columns[offset // 2]
        assert start_line == line, (code.co_name, offset)
        yield offset, (line, line if end_line is None else end_line,
                       0 if column is None else column + 1,
                       0 if end_column is None else end_column + 1)


def write_code(code, prefix):
    table = code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab
    print("code", prefix + code.co_name, code.co_firstlineno, table.hex() or "-")
    before = None
    for offset, position in positions(code):
        if position != before:
            print(offset, *position)
        before = position
    print("end", len(code.co_code))


def main():
    bare = sys.argv[1:] == ["--without-columns"]
    for code in code_objects(compile(source(), "sample.py", "exec", dont_inherit=True)):
        if not bare or code.co_name in ("cleanup", "negative_steps", "long_gap"):
            write_code(code, "without_columns:" if bare else "")
    if not bare and sys.version_info >= (3, 11):
        sys.stdout.flush()
        subprocess.run([sys.executable, "-X", "no_debug_ranges", __file__, "--without-columns"],
                       check=True)


sys.stdout.reconfigure(encoding="utf-8")
main()
