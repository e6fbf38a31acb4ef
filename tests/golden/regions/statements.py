"""A source with every statement and every way to be nested; its lines are counted
over this string of more than one line."""
from __future__ import annotations

import os, sys
import os.path as path, json as js
from collections import (  # why
    OrderedDict,
    deque as d,
)
from . import sibling
from .. import parent as p
from ...far.away import *
from.near import(a)

if sys.platform == "win32":
    import winreg
elif sys.platform == "darwin":

    import plistlib
elif sys.platform:
    # a comment heads this one

    x = 1
else:
    for sys_name in "ab":
        x = 2


@profile
def decorated(
    first,
    second=lambda: [i for i in range(3)],
):
    """Doc

    with a blank line
    """

    while first:
        first -= 1
        if first:
            continue
        else:
            break
    else:
        second = None

    # a comment between

    return second  # the end

# a comment after


@scalene.profile
@other(
    1,
)
async def coroutine():
    async with a as b:
        c = 1

        d = 2
    with a as b, \
            c as d:
        e = 1

        f = 2
    async for x in y:
        for z in x:
            while z:

                z = None
    else:
        pass
    try:
        raise ValueError
    except ValueError:
        for x in y:
            pass
    finally:
        def inner():
            yield 1; yield 2
    if a:
        for b in a:
            if b:
                c = 1
    elif b:
        while b:
            c = 1
    await asyncio.sleep(0)


class Outer(Base, metaclass=Meta):

    attribute = 1

    class Inner:
        @staticmethod
        @property
        def method(self):
            global made_global
            nonlocal_name = 1

            def made_global():
                nonlocal nonlocal_name
                def deep(): pass
                return deep

            class Local:
                def method(self): return 1

            return [made_global(
                x
            ) for x in
                range(3)]

        other = 1

    for i in range(2):
        def in_loop(self):
            for j in range(3):
                pass
            return 1
    while i: i -= 1
    @scalene.scalene_profiler.profile
    def last(self): pass


match x:
    case {"a": [1, 2]} if x:
        y = 1
        for z in y:
            pass
    case _:

        y = 2

text = f"{x!r:>{10}}" '''
    for not_a_loop in x:
''' "\
def not_a_function():"
while x: x = None; y = 1
for _ in []: pass
del x, y; assert True, "message"
	
if True:
	tab = 1
	if tab:
	    mixed = 1
x = 1 if y else \
    2

for a in b:
    class InLoop:
        def method(self):
            if self:
                for c in d:
                    pass
            return 1

    @decorator
    def function(): 
        pass
lambda: (yield)

def after_form_feed():
    pass

    return 1