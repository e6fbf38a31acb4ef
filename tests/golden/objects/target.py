"""A process full of objects of every kind that the small readers read. Says on stdout what they should find,
line by line (see test_objects.c), then "ready", and lives until its stdin ends. Texts are hex of UTF-8."""

import ctypes
import sys
import threading

MANY_THREADS = int(sys.argv[1]) if len(sys.argv) > 1 else 3


class Plain:
    def __init__(self, number):
        self.first = 1
        self.number = number


class Slots:
    __slots__ = ("slot",)


class SlotsParent(Slots):
    def __init__(self, number):
        self.slot = 7
        self.number = number


class Named(threading.Thread):
    extra = "of the class"

    def __init__(self, *arguments, **keywords):
        self.before = 5
        super().__init__(*arguments, **keywords)
        self.number = 6


class Text(str):
    pass


class Table(dict):
    pass


class Number(int):
    pass


def shown(text):
    """As strings.h promises."""
    return "".join("\u2400" if c == "\0" else "\ufffd" if "\ud800" <= c <= "\udfff" else c
                   for c in text).encode().hex() or "-"


def expect(*words):
    print(*words)


def define(name, thing):
    globals()[name] = thing
    return name


def integers():
    for i, value in enumerate((0, 1, -1, 2**30 - 1, 2**30, -2**30, 2**60 - 1, 2**60, -2**61, 2**63 - 1,
                               -2**63, 2**63, 2**64 - 1, True, Number(12345), Number(-2**40))):
        bits = value - 2**64 if value >= 2**63 else value
        expect("integer", define(f"integer_{i}", value), int(bits))
    for i, value in enumerate((2**64, -2**63 - 1, 2**100, -2**1000)):
        expect("too_large", define(f"large_{i}", value))


def strings():
    for i, text in enumerate(("", "a", "plain ascii", "Zoë Müller ÿ", "\x80", "日本語 тест €", "😀 astral 𝒳 é",
                              "a\0b", "é\0", "€\0", "😀\0", "lone \ud800 and \udcff", "\ud83d\ude00 pair",
                              "tab\tnewline\nescape\x1b", "\U0010ffff", "x" * 700, "é" * 700,
                              Text("subclass"), Text("Sübclass"), Text("под😀класс"), Text(""))):
        expect("string", define(f"string_{i}", text), shown(text))
    expect("too_long", define("long_string", "é" * (2**20 + 1)))
    for i, data in enumerate((b"", b"\0\1\2\xff", bytes(range(256)) * 4)):
        expect("bytes", define(f"bytes_{i}", data), data.hex() or "-")


def dict_names():
    yield "empty", {}
    yield "one", {"one": 1}
    yield "text_keys", {f"key_{i}": i for i in range(20)}
    yield "mixed_keys", {**{i: i for i in range(9)}, "text": 5, None: 6, (1, 2): 7}
    yield "two_byte_index", {i: i % 7 for i in range(171)}
    holes = {f"hole_{i}": i for i in range(30)}
    for i in range(0, 30, 3):
        del holes[f"hole_{i}"]
    yield "holes", holes
    cleared = {1: 2}
    cleared.clear()
    yield "cleared", cleared
    yield "subclass", Table(a=1, b=2)
    shared = [Plain(i) for i in range(3)]
    define("keep_shared", shared)
    yield "split", shared[1].__dict__
    partial = Plain(8)
    del partial.first
    define("keep_partial", partial)
    yield "split_with_hole", vars(partial)
    yield "module", {k: 1 for k in vars(threading)}


def dicts():
    for name, table in dict_names():
        expect("dict", define("dict_" + name, table), len(table), sum(table.values()))
        for key in list(table)[-2:]:
            if isinstance(key, str) and key.isidentifier():
                expect("item", "dict_" + name, key, table[key])
        expect("no_item", "dict_" + name, "absent")


def instances():
    fresh = Plain(41)
    materialised = Plain(42)
    materialised.__dict__
    replaced = Plain(43)
    replaced.__dict__ = {"other": 1, "number": 44}
    crowded = Plain(45)
    for i in range(60):
        setattr(crowded, f"attribute_{i}", i)
    removed = Plain(46)
    del removed.number
    late = Plain(47)
    late.unshared = 48
    error = ValueError("with attributes")
    error.number = 49
    for name, thing in (("fresh", fresh), ("materialised", materialised), ("replaced", replaced),
                        ("crowded", crowded), ("late", late), ("slots_parent", SlotsParent(50)),
                        ("error", error), ("thread", Named())):
        define("instance_" + name, thing)
        expect("attribute", "instance_" + name, "number", thing.number)
        expect("no_attribute", "instance_" + name, "absent")
        expect("type", "instance_" + name, type(thing).__name__)
    expect("attribute", "instance_crowded", "attribute_59", 59)
    expect("attribute", "instance_late", "unshared", 48)
    expect("attribute", "instance_thread", "before", 5)
    expect("no_attribute", "instance_thread", "extra")
    expect("no_attribute", define("instance_removed", removed), "number")
    expect("no_attribute", define("instance_slots", Slots()), "slot")
    expect("no_attribute", define("instance_none", None), "number")


def threads():
    end = threading.Event()
    names = ["plain", "Jürgen ÿ", "поток 線程", "😀 astral", "nul\0name", "lone \udc80", "", Text("subclass é"), "x" * 600]
    names += [f"many {i}" for i in range(MANY_THREADS)]
    for i, name in enumerate(names):
        thread = (Named if i % 4 == 1 else threading.Thread)(target=end.wait, daemon=True)
        thread.name = name
        thread._name = name  # str() in the setter makes a plain str of a subclass
        if i % 4 == 2:
            thread.__dict__
        if i % 4 == 3:
            thread.unshared = i
        thread.start()
    for ident, thread in threading._active.items():
        expect("thread", ident, shown(thread._name))
    return end


def interpreter():
    api = ctypes.pythonapi
    get = getattr(api, "PyInterpreterState_Get", None) or api._PyInterpreterState_Get
    get.restype = ctypes.c_void_p
    return get()


if __name__ == "__main__":
    expect("runtime", ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime")))
    expect("interpreter", interpreter())
    for section in (integers, strings, dicts, instances):
        section()
    END = threads()
    print("ready", flush=True)
    sys.stdin.read()
    END.set()
