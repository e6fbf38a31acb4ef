"""One case a function: every way in which CPython chains its frames. Each ends in target.park(),
and returns what park() returned, and so proves at the end that it ran on unharmed."""

import asyncio
import ctypes
import functools
import re
import sys

import target

WARM = 200  # calls after which every release has specialised a call site


def plain():
    return target.park()


def nested():
    def outer(value):
        def middle():
            def inner():
                return target.park() + value

            return inner()

        return middle()

    return outer(0)


class Shape:
    class Inner:
        def method(self):
            return Shape.of_class(self)

    def __init__(self, leaf):
        self.leaf = leaf
        self.result = leaf()

    @classmethod
    def of_class(cls, inner):
        return cls.static(inner)

    @staticmethod
    def static(inner):
        return (lambda: target.park())()

    @property
    def area(self):
        return self.leaf()

    def __getitem__(self, key):
        return self.leaf()

    def __getattr__(self, name):
        return self.leaf()

    def __call__(self):
        return self.leaf()

    def __add__(self, other):
        return self.leaf()

    def __enter__(self):
        return self.leaf()

    def __exit__(self, *unused):
        return None


def methods():
    return Shape.Inner().method()


def class_body():
    class Body:
        result = target.park()

    return Body.result


def comprehension():
    return [[target.park() for _ in "x"][0] for _ in "x"][0]


def generator():
    def numbers():
        yield 1
        yield target.park()

    total = 0
    for number in numbers():
        total += number
    return total - 1


def generator_expression():
    return sum(target.park() for _ in "x")


def yield_from():
    def leaf():
        yield 1
        yield target.park()

    def delegate(depth):
        result = yield from (delegate(depth - 1) if depth else leaf())
        return result

    return max(delegate(5))


def generator_calls_generator():
    def inner(last):
        for step in range(WARM):
            yield step
        yield target.park() if last else 0

    def outer():
        for last in (False, True):
            for value in inner(last):
                yield value

    return list(outer())[-1]


def generator_sent():
    def receiver():
        got = yield
        yield got + target.park()

    receiving = receiver()
    next(receiving)
    return receiving.send(0)


def generator_thrown():
    def catcher():
        try:
            yield
        except KeyError:
            yield target.park()

    catching = catcher()
    next(catching)
    return catching.throw(KeyError("x"))


def coroutine():
    async def leaf():
        await asyncio.sleep(0)
        return target.park()

    async def middle():
        return await leaf()

    async def first():
        return await asyncio.create_task(middle())

    return asyncio.run(first())


def coroutine_gathered():
    async def other():
        await asyncio.sleep(600)

    async def leaf(waiters):
        await asyncio.sleep(0)
        result = target.park()
        for waiter in waiters:
            waiter.cancel()
        return result

    async def first():
        waiters = [asyncio.create_task(other()) for _ in range(5)]
        return (await asyncio.gather(leaf(waiters), *waiters, return_exceptions=True))[0]

    return asyncio.run(first())


def async_generator():
    async def numbers():
        yield 1
        await asyncio.sleep(0)
        yield target.park()

    async def consume():
        last = 0
        async with Context():
            async for number in numbers():
                last = number
        return last

    class Context:
        async def __aenter__(self):
            await asyncio.sleep(0)

        async def __aexit__(self, *unused):
            await asyncio.sleep(0)

    return asyncio.run(consume())


def async_comprehension():
    async def numbers():
        yield target.park()

    async def consume():
        return [number async for number in numbers()][0]

    return asyncio.run(consume())


def callbacks():
    """Through C again and again: each crossing is an entry frame on 3.11 and later."""

    def by_sorted(value):
        return max(map(by_map, [value]))

    def by_map(value):
        return functools.reduce(by_reduce, [value, value])

    def by_reduce(left, right):
        return int(re.sub("x", by_re, "x"))

    def by_re(match):
        return str(functools.partial(by_partial, 1)())

    @functools.lru_cache(None)
    def by_partial(value):
        return next(filter(by_filter, [42]))

    def by_filter(value):
        return target.park()

    return 42 if sorted([1], key=by_sorted) else 0


def special_methods():
    shape = Shape(lambda: 1)

    def by_item():
        shape.leaf = by_property
        return shape["key"]

    def by_property():
        shape.leaf = by_attribute
        return shape.area

    def by_attribute():
        shape.leaf = by_call
        return shape.missing

    def by_call():
        shape.leaf = by_add
        return shape()

    def by_add():
        shape.leaf = by_enter
        return shape + shape

    def by_enter():
        shape.leaf = target.park
        with shape as result:
            return result

    return by_item()


def constructor_specialised():
    """3.12 and later push a shim frame of their own below a specialised __init__."""
    for step in range(WARM):
        last = Shape(target.park if step == WARM - 1 else int)
    return last.result


def calls_specialised():
    shape = Shape(int)

    def numbers(last):
        yield shape.area
        yield shape[last]

    result = 0
    for step in range(WARM):
        if step == WARM - 1:
            shape.leaf = target.park
            return shape["key"]
        for value in numbers(step):
            result += value
    return result


def finalizer():
    results = []

    class Dying:
        def __del__(self):
            results.append(target.park())

    Dying()
    return results[0]


def exec_and_eval():
    space = {"target": target}
    exec("def made(): return eval('target.park()')", space)
    return space["made"]()


def decorated():
    def logged(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)

        return wrapper

    @logged
    @logged
    def work(value=0):
        return target.park() + value

    return work(value=0)


def star_arguments():
    def work(*args, **kwargs):
        return target.park() if not args else work(*args[1:], **kwargs)

    return work(*range(5), key=1)


def handled_exception():
    try:
        raise KeyError("x")
    except KeyError:
        try:
            raise ValueError("y")
        except ValueError:
            return target.park()


def multi_line():
    def add(*values):
        return sum(
            values
        )

    return add(
        1, 2,
        add(
            -3,
            target.park(
                frames=True,
            ),
        ),
    )


def columns():
    étage = {"clé": [lambda first, second: second()]}; return 0 + étage["clé"][0]("é𐌀", target.park)


def long_line_table():
    """A function whose line table is larger than 64 KiB, with long gaps and steps backwards."""
    lines = ["def long(x):"]
    for number in range(9000):
        lines.append("    x = (x + %d) ^ (x - 1)" % number)
    for _ in range(200):
        lines += [""] * 300
        lines += ["    x = max(", "        x,", "        min(x,", "        x - 1),", "    )"]
    for _ in range(26000):
        lines.append("    x = 1")
    lines += ["    return (x -", "        1 +", "        target.park(table=size))", "    x = 2"]
    space = {"target": target, "size": 0}
    exec(compile("\n".join(lines), "long_line_table.py", "exec"), space)
    code = space["long"].__code__
    space["size"] = len(getattr(code, "co_linetable", None) or code.co_lnotab)
    if sys.version_info < (3, 10):
        space["size"] = len(code.co_lnotab)
    return space["long"](0)


def named(name):
    """Frames whose code object has that name (a JSON string, so that any text can be given)."""
    import json

    name = json.loads(name)
    function = lambda: target.park()
    code = function.__code__
    more = {"co_qualname": name} if hasattr(code, "co_qualname") else {}
    function.__code__ = code.replace(co_name=name, **more)
    return function()


def file_named(name):
    import json

    space = {"target": target}
    source = "def work():\n    return target.park()\nresult = work()"
    exec(compile(source, json.loads(name), "exec"), space)
    return space["result"]


def identifiers():
    space = {"target": target}
    source = """
def été_ÿ():
    return 変数_かな()
def 変数_かな():
    return 𐌀𐌁_𝔘()
def 𐌀𐌁_𝔘():
    class Größe:
        def 測る(self):
            return target.park()
    return Größe().測る()
"""
    exec(compile(source, "/tmp/Größe/変数/𐌀.py", "exec"), space)
    return space["été_ÿ"]()


def through_ctypes():
    """A callback from C that knows nothing of Python: libc's qsort."""
    results = []
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

    def compare(left, right):
        if not results:
            results.append(target.park())
        return 0

    array = (ctypes.c_int * 2)(1, 2)
    ctypes.CDLL(None).qsort(array, 2, 4, kind(compare))
    return results[0]


def alternating():
    """Python and C by turns, with plain calls between: for the merge of both kinds."""

    def first():
        return second()

    def second():
        return sorted([1, 2], key=third)

    def third(value):
        return fourth(value)

    def fourth(value):
        return max(map(fifth, [value])) if value == 1 else 0

    def fifth(value):
        return sixth()

    def sixth():
        return functools.reduce(seventh, [1, 2])

    def seventh(left, right):
        return target.park()

    return 42 if first() else 0


def at_import():
    """The stack of a module's body, with the import system's frames below it."""
    import parked_at_import

    return parked_at_import.result


CASES = {name: case for name, case in list(globals().items()) if callable(case)}

if __name__ == "__main__":
    target.run(CASES)
