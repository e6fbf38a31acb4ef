"""Programs that change their stacks as fast as they can, sampled many thousand times: no stack
that cannot exist, none dropped, and each chain's share is what it is of the program's time."""

import os
import random
import subprocess
import unittest

import harness
import judge

SAMPLER = os.path.join(os.environ.get("SCALENE_TEST_PROGRAMS", "."), "oracle")
FULL_RELEASES = {"3.8", "3.11", "3.13", "3.15"}
SAMPLES = 17000  # of each program: 100,000 of all six
NONBLOCKING_SAMPLES = 9000  # enough to tell one in 10,000 of all six
OTHER_SAMPLES = 3000  # of other releases, and of a release's other builds
PROGRAMS = [
    "oracle_%s.py" % name
    for name in ("alternation", "generators", "recursion", "copies", "locals", "threads")
]
FALSE_ALARM = 1e-4  # of all of a program's shares together, were there no bias
SAMPLER_PATIENCE_S = 240


class OracleTarget(harness.Target):
    """Tells at its end how long each of its blocks took."""

    def finish(self):
        os.close(self.go)
        self.go = -1
        self.last = self.hear()
        assert self.last["result"] == 42 and self.process.wait(harness.PATIENCE_S) == 0, self.last


def grammar_of(program, copies=None):
    names = (program, "oracle_target.py", "target.py")
    return judge.Grammar([os.path.join(harness.PROGRAMS, name) for name in names], copies)


def sample_count(most=SAMPLES):
    """All that is asked of a release goes to the first of its builds."""
    builds = [build for build in harness.interpreters() if build.release == harness.RELEASE]
    first = str(builds[0]) == str(harness.CURRENT)
    return most if first and harness.RELEASE in FULL_RELEASES else OTHER_SAMPLES


class Oracle(harness.AttachTest):
    def sample(self, program, samples, *options):
        with OracleTarget(program) as target:
            command = [SAMPLER, "--pid", target.pid, "--samples", samples, *options]
            run = subprocess.run(
                list(map(str, command)), stdout=subprocess.PIPE, timeout=SAMPLER_PATIENCE_S
            )
            target.finish()
        self.assertEqual(run.returncode, 0)
        harvest = judge.Harvest(run.stdout.decode())
        grammar = grammar_of(program, target.facts["copies"])
        return harvest, grammar, harvest.impossible(grammar), target

    def show(self, program, mode, harvest, faults, rest=""):
        counts = harvest.counts
        bad = sum(times for times, _ in faults)
        print(
            "oracle %-5s %-21s %-11s %5d accepted %3d impossible %4d dropped"
            " %5d clean %4d retried%s"
            % (harness.CURRENT.release, program, mode, harvest.accepted, bad, counts["dropped"],
               counts["clean"], counts["retried"], rest),
            flush=True,
        )
        return bad

    def check_default(self, program, wanted=None, *options):
        """What chains by turns take follows from times of blocks, if a chain takes the same in each
        of them. Now and then it does not, by the addresses that a process has, also without us (the
        blocks of block_chain on 3.15 in one process of some twenty: 230 ns a call for 218, which
        would be a share of 0.46 for 0.5): shares that are off have to be so in another one, too."""
        target, off = self.check_once(program, wanted or sample_count(), *options)
        if off:
            target, off = self.check_once(program, wanted or sample_count(), *options)
        self.assertEqual(list(map(str, off)), [])
        return target

    def check_once(self, program, wanted, *options):
        harvest, grammar, faults, target = self.sample(program, wanted, *options)
        shares = judge.all_shares(harvest, grammar, target.facts, target.last)
        limit = judge.t_quantile(FALSE_ALARM / len(shares), judge.BATCHES - 1)
        worst = max(shares, key=lambda share: abs(share.deviation))
        mode = options[0][2:] if options else "default"
        self.show(program, mode, harvest, faults, ", worst of %d: %s" % (len(shares), worst))
        self.assertEqual(faults, [])
        self.assertEqual(harvest.counts["dropped"], 0)
        self.assertEqual(harvest.counts["unlisted"], 0)
        self.assertEqual(harvest.accepted, wanted)
        for share in shares:
            self.assertGreater(share.error, 0, share.name)
        return target, [share for share in shares if abs(share.deviation) >= limit]

    def test_alternation(self):
        self.check_default("oracle_alternation.py")

    def test_careful(self):
        """As a profile looks at threads that call the kernel often: at moments set before."""
        for program in ("oracle_alternation.py", "oracle_copies.py"):
            self.check_default(program, OTHER_SAMPLES, "--careful")

    def test_generators(self):
        self.check_default("oracle_generators.py")

    def test_recursion(self):
        self.check_default("oracle_recursion.py")

    def test_copies(self):
        self.check_default("oracle_copies.py")

    def test_locals(self):
        self.check_default("oracle_locals.py")

    def test_threads(self):
        target = self.check_default("oracle_threads.py")
        self.assertGreater(target.last["threads_a_second"], 100)

    def test_interpreter_of_another_thread(self):
        """Only stacks of the sub-interpreter's own code are judged. Before 3.11 nothing tells who
        runs it, so what was seen to move is dropped, and told of."""
        with OracleTarget("oracle_interpreter.py") as target:
            command = [SAMPLER, "--pid", target.pid, "--samples", OTHER_SAMPLES]
            run = subprocess.run(
                list(map(str, command)), stdout=subprocess.PIPE, timeout=SAMPLER_PATIENCE_S
            )
            target.finish()
        self.assertEqual(run.returncode, 0)
        harvest = judge.Harvest(run.stdout.decode())
        harvest.keep(lambda stack: stack and stack[0][0] == "<module>" and stack[0][1][0] == "<")
        (name,) = {stack[0][1] for *_, stack in harvest.stacks}  # 3.14 has another one
        grammar = judge.Grammar([])
        with open(os.path.join(harness.PROGRAMS, "oracle_inside.py")) as file:
            grammar.read(name, file.read())
        faults = harvest.impossible(grammar)
        self.show("oracle_interpreter.py", "default", harvest, faults)
        self.assertEqual(faults, [])
        tells = harness.CURRENT.version >= (3, 11)
        if tells:
            self.assertEqual(harvest.counts["dropped"], 0)
        self.assertGreater(harvest.accepted, OTHER_SAMPLES / 20 if tells else 0)

    def test_nonblocking(self):
        """Of all that is accepted of the six, one in ten thousand at most: no more than chance
        makes of that rate."""
        accepted, impossible = 0, []
        samples = sample_count(NONBLOCKING_SAMPLES)
        for program in PROGRAMS:
            harvest, _, faults, _ = self.sample(program, samples, "--nonblocking")
            self.show(program, "nonblocking", harvest, faults)
            accepted += harvest.accepted
            impossible += faults
        self.assertGreater(accepted, len(PROGRAMS) * samples / 10)
        most = judge.poisson_limit(accepted / 10000, FALSE_ALARM)
        self.assertLessEqual(sum(times for times, _ in impossible), most, impossible[:5])


PROGRAM = """\
def leaf():
    pass


def one():
    leaf()  # -> leaf
    pass


def other():
    pass
    leaf()  # -> leaf


def thread():  # root
    one()  # -> one


one()  # -> one
other()  # -> other
"""


class Judge(unittest.TestCase):
    """It must refuse what these programs are there to show."""

    def faults(self, *stacks, copies=None):
        grammar = judge.Grammar([], copies)
        grammar.read("p.py", PROGRAM)
        grammar.roots_marked = False
        return [
            grammar.fault(
                [(name, file or "p.py", line) for name, line, file in map(self.full, stack)]
            )
            for stack in stacks
        ]

    def full(self, frame):
        name, line, *file = frame
        return name, line, file[0] if file else None

    def test_stacks_that_exist(self):
        found = self.faults(
            [("<module>", 19), ("one", 6), ("leaf", 2)],
            [("<module>", 20), ("other", 12), ("leaf", 1)],
            [("<module>", 20), ("other", 11)],
            [("thread", 16), ("one", 7)],
        )
        self.assertEqual(found, [None] * 4)

    def test_stacks_that_cannot_exist(self):
        stacks = [
            [("<module>", 19), ("other", 12), ("leaf", 2)],  # the caller's line is another's
            [("<module>", 20), ("one", 6)],
            [("<module>", 20), ("other", 11), ("leaf", 2)],  # that line calls nobody
            [("<module>", 19), ("leaf", 2)],  # a frame is missing
            [("<module>", 19), ("one", 6), ("leaf", 6)],  # the line is another function's
            [("one", 6), ("leaf", 2)],  # no thread begins there
            [("thread", 16), ("other", 12), ("leaf", 2)],  # two chains are mixed
            [("<module>", 19), ("one", 6), ("leaf", 2, "q.py")],
            [],
        ]
        self.assertNotIn(None, self.faults(*stacks))

    def test_stale_copies(self):
        """Name, file and lines of copied code must be those of the same copy: 105 % 97 * 20
        lines down."""
        begin = [("<module>", 19)]
        good = begin + [("one_105", 166, "one_105.py"), ("leaf_106", 182, "leaf_106.py")]
        stale = [
            begin + [("one_105", 166, "one_104.py")],
            begin + [("one_105", 146, "one_105.py")],
            begin + [("one_105", 166, "one_105.py"), ("leaf_105", 182, "leaf_105.py")],
            begin + [("other_105", 172, "other_105.py")],
        ]
        self.assertEqual(self.faults(good, copies=(97, 20)), [None])
        self.assertNotIn(None, self.faults(*stale, copies=(97, 20)))

    def test_shares(self):
        """Half of 20,000 samples: a share that is 3 % off is seen, one that is right is let
        pass."""
        limit = judge.t_quantile(FALSE_ALARM, judge.BATCHES - 1)
        draw = random.Random(1)
        whole = judge.Sums([SAMPLES // judge.BATCHES] * judge.BATCHES, SAMPLES)
        for chance, is_bias in ((0.5, False), (0.53, True), (0.47, True)):
            part = [sum(draw.random() < chance for _ in range(count)) for count in whole]
            deviation = judge.Share("drawn", part, whole, 0.5).deviation
            self.assertEqual(abs(deviation) > limit, is_bias, deviation)

    def test_twins(self):
        """Chains of 3 and 2 microseconds with a loop of 0.1: a share of 60 %, were both blocks
        called as often; four times as many calls of the one that holds the slow chain twice make
        it (2 * 4 + 1) * 3 of (2 * 4 + 1) * 3 + (4 + 2) * 2. Without scatter there is no error."""
        turns = {"one": [(100, 8.1e-4)] * 20, "other": [(100, 7.1e-4)] * 20}
        share, error = judge.twin_truth(turns, ("one", "other"))
        self.assertAlmostEqual(share, 0.6, 2)
        self.assertAlmostEqual(error, 0)
        turns["one"] = [(300, 24.3e-4), (500, 40.5e-4)] * 10
        share, _ = judge.twin_truth(turns, ("one", "other"))
        self.assertAlmostEqual(share, 27 / 39, 2)
        draw = random.Random(1)
        turns["one"] = [(100, 8.1e-4 * draw.gauss(1, 0.02)) for _ in range(20)]
        _, error = judge.twin_truth(turns, ("one", "other"))
        self.assertAlmostEqual(error, 1.5 * 8.1 * 0.02 / 20**0.5 / 15.2, 3)

    def test_quantile(self):
        """Student's own table: 63 degrees of freedom."""
        self.assertAlmostEqual(judge.t_quantile(0.05, 63), 1.998, 3)
        self.assertAlmostEqual(judge.t_quantile(0.01, 63), 2.656, 3)


if __name__ == "__main__":
    harness.main()
