"""Programs that change their stacks as fast as they can, sampled many thousand times: no stack that cannot exist, none
dropped, and each chain's share is what it is of the program's time."""

import os
import subprocess

import harness
import judge

SAMPLER = os.path.join(os.environ.get("SCALENE_TEST_PROGRAMS", "."), "oracle")
FULL_RELEASES = {"3.8", "3.11", "3.13", "3.15"}
SAMPLES = 20000
OTHER_SAMPLES = 3000
FALSE_ALARM = 1e-4  # of one program's shares together, were there no bias
SAMPLER_PATIENCE_S = 240


class OracleTarget(harness.Target):
    """Tells at its end how long each of its blocks took."""

    def finish(self):
        os.close(self.go)
        self.go = -1
        last = self.hear()
        assert last["result"] == 42 and self.process.wait(harness.PATIENCE_S) == 0, last
        self.times = last["times"]


class Oracle(harness.AttachTest):
    def sample(self, program, count, *options):
        paths = [os.path.join(harness.PROGRAMS, name) for name in (program, "oracle_target.py", "target.py")]
        with OracleTarget(program) as target:
            command = [SAMPLER, "--pid", target.pid, "--samples", count, *options]
            run = subprocess.run(
                list(map(str, command)), stdout=subprocess.PIPE, timeout=SAMPLER_PATIENCE_S
            )
            target.finish()
        self.assertEqual(run.returncode, 0)
        harvest = judge.Harvest(run.stdout.decode())
        grammar = judge.Grammar(paths, target.facts["copies"])
        return harvest, grammar, target

    def show(self, program, mode, harvest, bad, rest=""):
        counts = harvest.counts
        print(
            "oracle %-6s %-20s %-11s %6d accepted, %d impossible, %d dropped, %d clean, %d retried%s"
            % (harness.CURRENT.release, program, mode, harvest.accepted, bad, counts["dropped"],
               counts["clean"], counts["retried"], rest),
            flush=True,
        )

    def check_default(self, program):
        count = SAMPLES if harness.RELEASE in FULL_RELEASES else OTHER_SAMPLES
        harvest, grammar, target = self.sample(program, count)
        faults = harvest.impossible(grammar)
        bad = sum(times for times, _ in faults)
        shares = judge.block_shares(harvest, target.times)
        shares += judge.part_shares(harvest, grammar, target.facts["parts"], target.times)
        limit = judge.t_quantile(FALSE_ALARM / len(shares), shares[0].freedom)
        worst = max(shares, key=lambda share: abs(share.deviation))
        self.show(program, "default", harvest, bad, ", worst " + str(worst))
        self.assertEqual(faults, [])
        self.assertEqual(harvest.counts["dropped"], 0)
        self.assertEqual(harvest.accepted, count)
        for share in shares:
            self.assertLess(abs(share.deviation), limit, str(share))

    def check_nonblocking(self, program):
        count = SAMPLES if harness.RELEASE in FULL_RELEASES else OTHER_SAMPLES
        harvest, grammar, _ = self.sample(program, count, "--nonblocking")
        faults = harvest.impossible(grammar)
        bad = sum(times for times, _ in faults)
        self.show(program, "nonblocking", harvest, bad)
        self.assertLessEqual(bad, harvest.accepted / 10000, faults[:5])

    def test_alternation(self):
        self.check_default("oracle_alternation.py")

    def test_alternation_nonblocking(self):
        self.check_nonblocking("oracle_alternation.py")


if __name__ == "__main__":
    harness.main()
