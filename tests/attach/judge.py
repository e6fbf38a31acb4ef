"""Judges what tests/attach/oracle.c saw of a program of tests/programs/oracle_*.py: which of the
stacks cannot exist, by the marks in the program's source, and how far shares of samples are from
shares of time."""

import math
import ast
import fnmatch
import os
import re
import statistics

BATCHES = 64  # as in oracle.c


class Grammar:
    """The stacks that a program can have: functions, their lines, and who is called from which
    line."""

    def __init__(self, paths, copies=None):
        self.lines = {}  # (file, name) -> line numbers that have code
        self.calls = {}  # (file, line) -> patterns of names
        self.roots = set()
        self.roots_marked = False
        self.copies = copies
        for path in paths:
            with open(path) as file:
                self.read(os.path.basename(path), file.read())

    def read(self, file, text):
        tree = ast.parse(text)
        source = text.splitlines()
        for number, line in enumerate(source, 1):
            mark = re.search(r"# -> (.*)$", line)
            if mark:
                self.calls[file, number] = re.split(r",\s*", mark.group(1))
        functions = [
            node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        ]
        for function in functions:
            self.lines[file, function.name] = {
                node.lineno for node in ast.walk(function) if hasattr(node, "lineno")
            }
            if source[function.lineno - 1].endswith("# root"):
                self.roots.add((file, function.name))
                self.roots_marked = True
        within = {line for function in functions for line in self.lines[file, function.name]}
        self.lines[file, "<module>"] = set(range(1, len(source) + 1)) - within
        self.roots.add((file, "<module>"))

    def call_sites(self, function, callee):
        return {
            line
            for (file, name), lines in self.lines.items()
            for line in lines
            if name == function and callee in self.calls.get((file, line), ())
        }

    def original(self, frame):
        """Copied code is named after its template and a number, in a file of that name, as many
        lines further down as the number says: any of the three alone would be stale."""
        name, file, line = frame
        copy = re.match(r"(.*)_(\d+)$", name)
        if self.copies and copy:
            if file != name + ".py":
                return None
            homes = [home for home, owner in self.lines if owner == copy.group(1)]
            if not homes:
                return None
            shifts, lines = self.copies
            return copy.group(1), homes[0], line - int(copy.group(2)) % shifts * lines
        return frame

    def fault(self, stack):
        """Why it cannot exist, or None; `stack` holds (name, file, line), outermost first."""
        allowed = None
        for depth, seen in enumerate(stack):
            frame = self.original(seen)
            if not frame or frame[2] not in self.lines.get((frame[1], frame[0]), ()):
                return "no such code: %s:%s:%d" % seen
            name, file, line = frame
            if allowed is None and (file, name) not in self.roots:
                return "cannot be outermost: %s:%s:%d" % seen
            if allowed is not None and not any(fnmatch.fnmatch(name, one) for one in allowed):
                return "cannot be called there: %s:%s:%d from %s:%s:%d" % (*seen, *stack[depth - 1])
            allowed = self.calls.get((file, line), ())
        # a thread whose state is there may not have called anything yet
        return None if stack or self.roots_marked else "no frames"


class Harvest:
    """The sampler's output."""

    def __init__(self, output):
        *rows, last = output.splitlines()
        words = last.split()
        assert words[0] == "#", last
        self.counts = {key: int(value) for key, value in zip(words[1::2], words[2::2])}
        self.stacks = []  # (count, CPU by batch, squares of CPU by look, stack)
        for row in rows:
            count, batches, squares, stack = row.split("\t")
            frames = [frame.split(":") for frame in stack.split(";")] if stack else []
            self.stacks.append((
                int(count),
                [int(number) for number in batches.split(",")],
                int(squares),
                [(name, file, int(line)) for name, file, line in frames],
            ))
        self.accepted = sum(count for count, _, _, _ in self.stacks)

    def keep(self, wanted):
        self.stacks = [row for row in self.stacks if wanted(row[-1])]
        self.accepted = sum(row[0] for row in self.stacks)

    def impossible(self, grammar):
        faults = [(count, grammar.fault(stack)) for count, _, _, stack in self.stacks]
        return [(count, fault) for count, fault in faults if fault]

    def batches(self, chosen):
        """By batch: CPU time of the samples that have a frame that is chosen."""
        sums = Sums([0] * BATCHES)
        for _, batches, squares, stack in self.stacks:
            if any(map(chosen, stack)):
                sums += Sums(batches, squares)
        return sums


class Sums(list):
    """CPU time by batch, and of it the squares by look, which tell on how few looks it rests."""

    def __init__(self, batches, squares=0.0):
        super().__init__(batches)
        self.squares = squares

    def __add__(self, other):
        return Sums([a + b for a, b in zip(self, other)], self.squares + other.squares)

    __iadd__ = __add__


def poisson_limit(mean, false_alarm):
    """The largest count that is still to be expected at that mean."""
    count, chance = 0, math.exp(-mean)
    rest = 1 - chance
    while rest > false_alarm:
        count += 1
        chance *= mean / count
        rest -= chance
    return count


def t_quantile(chance, freedom):
    """Two-sided quantile of Student's distribution (Cornish and Fisher's expansion)."""
    z = statistics.NormalDist().inv_cdf(1 - chance / 2)
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )


class Share:
    """A chain's part among some, compared with its true part. The error is estimated from the
    batches' scatter; where some looks stand for much time (the program was without a core between
    them) that is itself a matter of chance, and it is at least what independent looks of these
    weights have."""

    def __init__(self, name, part, whole, true_share, true_error=0.0):
        self.name, self.true_share = name, true_share
        self.share = sum(part) / max(1, sum(whole))
        mean = sum(whole) / len(whole)
        # linearised ratio: batches weigh by what was seen in them
        residuals = [(a - self.share * b) / mean for a, b in zip(part, whole)] if mean else [0]
        self.freedom = len(residuals) - 1
        scatter = statistics.stdev(residuals) / len(residuals) ** 0.5
        least = math.sqrt(true_share * (1 - true_share) * whole.squares) / max(1, sum(whole))
        self.error = math.hypot(max(scatter, least), true_error)
        self.deviation = (self.share - true_share) / self.error if self.error else 0.0

    def __str__(self):
        return "%s: %.4f, true %.4f, %+.1f standard errors of %.4f" % (
            self.name, self.share, self.true_share, self.deviation, self.error)


def columns_sum(rows):
    return sum(rows, Sums([0] * BATCHES))


def block_shares(harvest, times):
    """Each block's, by the time that it took."""
    found = {
        name: harvest.batches(lambda frame, name=name: frame[0] == name) for name in times
    }
    whole = columns_sum(found.values())
    total = sum(times.values())
    return [Share(name, found[name], whole, seconds / total) for name, seconds in times.items()]


def sites_batches(harvest, grammar, blocks, chain):
    """What is in these blocks at a line that calls the chain, whether or not it has begun."""
    sites = {(block, line) for block in blocks for line in grammar.call_sites(block, chain)}
    return harvest.batches(lambda frame: (frame[0], frame[2]) in sites)


def call_time(turns):
    """Of one call of a block, and how far that may be off by the scatter of its turns."""
    calls = sum(count for count, _ in turns)
    mean = sum(seconds for _, seconds in turns) / calls
    residuals = [seconds - mean * count for count, seconds in turns]
    return mean, statistics.stdev(residuals) * len(turns) ** 0.5 / calls, calls


def twin_truth(turns, blocks):
    """One chain's share of both blocks, and its error. A call of the first block holds it twice
    and the other chain once, one of the second block the other way round: what they take, up to
    the loop around them, that is no more of the one than of the other."""
    (first, first_error, first_calls), (second, second_error, second_calls) = (
        call_time(turns[block]) for block in blocks
    )
    lead = 3 * (first - second) / (first + second)  # of the one over the other
    one = (1 + lead) * (2 * first_calls + second_calls)
    other = (1 - lead) * (first_calls + 2 * second_calls)
    return one / (one + other), 1.5 * math.hypot(first_error, second_error) / (first + second)


def twin_shares(harvest, grammar, twins, turns):
    found = []
    for blocks, (one, other) in twins:
        part = sites_batches(harvest, grammar, blocks, one)
        whole = columns_sum([part, sites_batches(harvest, grammar, blocks, other)])
        truth = twin_truth(turns, blocks)
        found.append(Share("%s in %s" % (one, blocks[0]), part, whole, *truth))
    return found


def uneven_shares(harvest, grammar, uneven):
    """By the time that the block itself took for each of its chains."""
    found = []
    for block, parts in uneven:
        (one, seconds), (other, rest) = parts.items()
        part = sites_batches(harvest, grammar, [block], one)
        whole = columns_sum([part, sites_batches(harvest, grammar, [block], other)])
        found.append(Share("%s in %s" % (one, block), part, whole, seconds / (seconds + rest)))
    return found


def all_shares(harvest, grammar, facts, last):
    return (
        block_shares(harvest, last["times"])
        + twin_shares(harvest, grammar, facts["twins"], last.get("turns"))
        + uneven_shares(harvest, grammar, last["uneven"])
    )
