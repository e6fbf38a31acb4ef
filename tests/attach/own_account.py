"""A program that keeps account of itself, and what a profile says of it."""

import json
import os
import tempfile

import harness

BUSY = 0.03  # of the time a program waits for a core: others starve it, and us
LOOKS = 4  # at programs that were starved, until one is good
CPU_KEYS = ("cpu_python_s", "cpu_native_s", "cpu_kernel_s")


def cpu_of(entry):
    return sum(entry[key] for key in CPU_KEYS)


class Profile:
    """A program's own words and its profile."""

    def __init__(self, program, *arguments, options=(), prefix=()):
        path = os.path.join(harness.PROGRAMS, program)
        inner = harness.CURRENT.inner(path)
        with tempfile.TemporaryDirectory() as folder:
            output = os.path.join(folder, "profile.json")
            words = [*harness.CURRENT.command(), inner, *arguments]
            answer = harness.run_attach(
                "-q", *options, "-o", output, "--program-path", os.path.dirname(inner), "--",
                *words, prefix=prefix, env=harness.CURRENT.with_numpy(),
            )
            assert answer.returncode == 0, answer.stderr.decode()
            with open(output) as file:
                self.json = json.load(file)
        self.said = json.loads(answer.stdout.decode() or "null")
        self.totals = self.json["totals"]
        self.sampling = self.json["sampling"]
        files = [file for name, file in self.json["files"].items() if name.endswith(program)]
        self.lines = {line["lineno"]: line for line in files[0]["lines"]} if files else {}

    def starved(self):
        return self.totals["wait_s"]["cpu"] > BUSY * self.totals["elapsed_s"]

    def doubt_s(self, lines):
        """Where others keep program and sampler from working, looks are few and come when the
        scheduler lets them: then no more can be asked than what the profile itself claims."""
        base = self.totals["idle_s"] + cpu_of(self.totals)
        errors = sum(line["error_percent"] for line in lines)
        return errors / 100 * base if self.starved() else 0


def look(is_good, *arguments, **options):
    """A profile; another one where it is not good and others kept the program from working."""
    for _ in range(LOOKS):
        profile = Profile(*arguments, **options)
        if is_good(profile) or not profile.starved():
            break
    return profile
