#!/usr/bin/env python3
"""What a profile of 2,000 files with 100 lines each costs to be viewed and exported: seconds, of
them CPU, and memory as a multiple of the file's size. The program is that of SCALENE_ATTACH; the
medians are of several runs by turns, and 10 times the file's size fails."""

import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

FILES, LINES, ACTIVE, RUNS, MEMORY_LIMIT = 2000, 100, 0.2, 5, 10
MODEL = pathlib.Path(__file__).parent.parent / "golden/profile/memory.json"
CODE = ["def function(self, argument, other=None):", "    value = [item ** 2 for item in argument]",
        "    for index in range(10):", "        self.total += value[index] * 3.25  # adds up",
        "    return {'key': value, 'other': other}", ""]
VIEWS = {"view --cli": ["--cli"], "view --cli -r": ["--cli", "-r"],
         "view --top": ["--cli", "--top", "50"], "view --json": ["--json", "--top", "50"]}
EXPORTS = ["collapsed", "speedscope", "pprof", "gecko", "perfetto"]


def make_file(active, blank, share):
    lines = []
    for number in range(1, LINES + 1):
        line = dict(active if random.random() < ACTIVE else blank, lineno=number,
                    line=CODE[number % len(CODE)] + "\n")
        line.update({key: number for key in line if key.startswith(("start_", "end_"))})
        lines.append(line)
    functions = [{key: value for key, value in line.items()
                  if not key.startswith(("start_", "end_"))} for line in lines[::6]]
    return {"functions": functions, "imports": [], "leaks": {}, "lines": lines,
            "percent_cpu_time": share}


def dump(value):
    return json.dumps(value, sort_keys=True)


def write_profile(path):
    """Flat lines as the program writes them."""
    profile = json.loads(MODEL.read_text())
    model = next(iter(profile["files"].values()))["lines"]
    profile["profiler"]["version"] = "0.0.0"
    del profile["files"]
    with open(path, "w") as out:
        out.write(dump(profile)[:-1] + ', "files": {\n')
        for number in range(FILES):
            text = dump(make_file(model[6], model[1], 100 / FILES)).replace("}, {", "},\n{")
            out.write(f'{"," if number else ""}"/srv/app/package/module_{number}.py": {text}\n')
        out.write("}}\n")


def measure(command):
    """Seconds, CPU seconds, and bytes at most."""
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                             env={**os.environ, "COLUMNS": "120"})
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    if status:
        sys.exit(f"{' '.join(command)}: status {status}")
    return (time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def main():
    program = os.environ["SCALENE_ATTACH"]
    random.seed(1)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "large.json")
        write_profile(path)
        size = os.path.getsize(path)
        commands = {name: [program, "view", path, *words] for name, words in VIEWS.items()}
        commands |= {f"export {form}": [program, "export", "--format", form, path]
                     for form in EXPORTS}
        print(f"{FILES} files, {FILES * LINES} lines, {size >> 20} MiB")
        runs = {name: [] for name in commands}
        for _ in range(RUNS):
            for name, command in commands.items():
                runs[name].append(measure(command))
        for name, measured in runs.items():
            wall, cpu, memory = (statistics.median(column) for column in zip(*measured))
            print(f"{name:18} {wall:5.2f} s  CPU {cpu:5.2f} s  {memory / size:4.1f} x the file")
            failed |= memory >= MEMORY_LIMIT * size
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
