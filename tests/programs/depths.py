"""Stacks of any depth, and frames larger than a chunk of the data stack; one case a function."""

import sys
import threading

import target


def in_thread(function):
    result = []
    threading.stack_size(1 << 29)
    thread = threading.Thread(target=lambda: result.append(function()), name="deep")
    thread.start()
    thread.join()
    return result[0]


def deep(depth):
    """Python calls alone; up to 3.10 each also costs C stack, hence the thread with much of it."""

    def down(left):
        if left:
            return down(left - 1)
        return target.park(frames=False, tid=threading.get_native_id())

    sys.setrecursionlimit(int(depth) + 1000)
    return in_thread(lambda: down(int(depth) - 1))


def deep_and_wide(depth):
    """400 locals a frame: more than a hundred megabytes of them, whatever holds the frames."""
    lines = ["def down(left):"]
    lines += ["    local_%d = left" % number for number in range(400)]
    lines += ["    if left:", "        return down(left - 1)"]
    lines += ["    return target.park(frames=False, tid=threading.get_native_id())"]
    space = {"target": target, "threading": threading}
    exec(compile("\n".join(lines), __file__, "exec"), space)
    sys.setrecursionlimit(int(depth) + 1000)
    return in_thread(lambda: space["down"](int(depth) - 1))


def deep_through_c(depth):
    """Every other call goes through C (map and next)."""

    def down(left):
        if left:
            return next(map(down, [left - 1]))
        return target.park(frames=False, tid=threading.get_native_id())

    sys.setrecursionlimit(int(depth) * 3 + 1000)
    return in_thread(lambda: down(int(depth) - 1))


def deep_generators(depth):
    """Every frame lies outside the data stack."""

    def down(left):
        if left:
            for value in down(left - 1):
                yield value
        else:
            yield target.park(frames=False, tid=threading.get_native_id())

    sys.setrecursionlimit(int(depth) + 1000)
    return in_thread(lambda: next(down(int(depth) - 1)))


def many_locals():
    """1,800 locals: a frame larger than a data-stack chunk."""
    lines = ["def wide(depth):"]
    lines += ["    local_%d = depth" % number for number in range(1800)]
    lines += ["    return wide(depth - 1) if depth else target.park()"]
    space = {"target": target}
    exec(compile("\n".join(lines), "many_locals.py", "exec"), space)
    return space["wide"](20)


CASES = {name: case for name, case in list(globals().items()) if callable(case)}

if __name__ == "__main__":
    target.run(CASES)
