#!/usr/bin/env python3
"""The Firefox Profiler's own code, by its command line, reads what is for it: threads with their
CPU time, the functions that time went to, waits, memory."""

import json
import os
import re
import select
import subprocess
import sys
import tempfile

from exports import find_node, find_tool, for_each_profile, run


class Session:
    """A profile that is open in the command line's process that answers, which is our child."""

    def __init__(self, path):
        self.home = tempfile.TemporaryDirectory()
        self.words = [find_node(), find_tool("profiler-cli/dist/profiler-cli.js")]
        self.environment = {**os.environ, "PROFILER_CLI_SESSION_DIR": self.home.name,
                            "HOME": self.home.name, "NO_COLOR": "1"}
        log = os.path.join(self.home.name, "ours.log")
        os.mkfifo(log)
        self.log = os.open(log, os.O_RDWR)
        self.server = subprocess.Popen([*self.words, "--daemon", path, "--session", "ours"],
                                       env=self.environment, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)

    def __enter__(self):
        """What it logs tells when it can be asked; asked before, it may be taken for dead."""
        said = b""
        while b"Profile loaded" not in said:
            ready, _, _ = select.select([self.log], [], [], 60)
            assert ready and b"ERROR" not in said, (self.server.poll(), said)
            said += os.read(self.log, 65536)
        return self

    def __exit__(self, *_):
        self.server.kill()
        self.server.wait()
        os.close(self.log)
        self.home.cleanup()

    def say(self, *words):
        return run(*self.words, *words, "--session", "ours", env=self.environment).decode()

    def ask(self, *words):
        return json.loads(self.say(*words, "--json"))


def milliseconds(text):
    number, unit = re.fullmatch(r"([\d.]+)(µs|us|ns|ms|s)", text).groups()
    return float(number) * {"ns": 1e-6, "µs": 1e-3, "us": 1e-3, "ms": 1, "s": 1000}[unit]


def check_threads(session, export):
    """Threads are listed in a table: handle, name, command, pid, CPU, markers."""
    rows = re.findall(r"^[* ] (t-\d+) +.* (\d+) +(\S+) +(\d+)$", session.say("thread", "list"),
                      re.MULTILINE)
    assert len(rows) == len(export.threads()), rows  # no empty ones
    assert {int(pid) for _, pid, _, _ in rows} >= {pid for pid, _ in export.threads()}
    cpu = sum(milliseconds(time) for _, _, time, _ in rows)
    assert abs(cpu - export.sum("cpu") / 1000) < 0.01 * len(rows), (cpu, rows)
    return [handle for handle, _, _, _ in rows]


def check_samples(session, export, handles):
    total, shown = 0, set()
    for handle in handles:
        said = session.ask("thread", "samples", "--include-idle", "--thread", handle)
        assert said["weightType"] == "tracing-ms"
        own = [row["selfSamples"] for row in said["topFunctionsBySelf"]]
        shown |= {row["name"].split("!")[-1] for row in said["topFunctionsByTotal"]}
        total += sum(own)
    base = (export.sum("cpu") + export.sum("idle")) / 1000
    assert abs(total - base) < 1e-6, (total, base)
    assert export.functions() <= shown, export.functions() - shown


def check_memory(session, export):
    if not export.profile["memory_stacks"]:
        return
    session.say("strategy", "native-allocations")
    said = session.ask("thread", "samples")
    total = sum(row["selfSamples"] for row in said["topFunctionsBySelf"])
    assert said["weightType"] == "bytes"
    assert abs(total - export.bytes()) <= len(export.profile["memory_stacks"])
    session.say("strategy", "native-retained-allocations")
    said = session.ask("thread", "samples")
    live = sum(row["selfSamples"] for row in said["topFunctionsBySelf"])
    assert abs(live - export.live()) <= len(export.profile["memory_stacks"]), (live, said)
    assert "Memory" in session.say("counter", "list")


def check(export):
    with Session(export.path) as session:
        handles = check_threads(session, export)
        check_samples(session, export, handles)
        check_memory(session, export)


if __name__ == "__main__":
    find_tool("profiler-cli/dist/profiler-cli.js")
    find_node()
    sys.exit(for_each_profile(".gecko.json", check, ["memory.json", "shop.json"]))
