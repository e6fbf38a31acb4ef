"""What Scalene itself, from the environment that cmake/scalene makes, says to a profile of ours."""

import json
import os
import pathlib
import subprocess
import tempfile

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
VENV = CACHE / "scalene-attach" / "scalene-venv"
SKIPPED = 77

# Every field of the model, not only the required ones, is in the text.
VALIDATE = """
import json, sys
from scalene.scalene_json import ScaleneJSONSchema, FileDetail, FunctionDetail, LineDetail
text = open(sys.argv[1]).read()
ScaleneJSONSchema.model_validate_json(text)
profile = json.loads(text)
def check(model, record, where):
    missing = set(model.model_fields) - set(record)
    assert not missing, (where, missing)
check(ScaleneJSONSchema, profile, "profile")
for path, file in profile["files"].items():
    check(FileDetail, file, path)
    for line in file["lines"]:
        check(LineDetail, line, path)
    for function in file["functions"]:
        check(FunctionDetail, function, path)
    for number, line in enumerate(file["lines"], 1):
        assert line["lineno"] == number, (path, number)
print("valid")
"""


def run(folder, *command):
    environment = {**os.environ, "TMPDIR": folder, "NO_COLOR": "1", "COLUMNS": "200",
                   "TERM": "xterm"}  # a dumb one has 80 columns, says rich
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, (command, done.returncode, done.stdout, done.stderr)
    return done.stdout


def check_model(folder, path):
    assert run(folder, VENV / "bin/python", "-c", VALIDATE, path) == "valid\n"


def check_terminal(folder, path, profile):
    shown = run(folder, VENV / "bin/scalene", "view", "--cli", path)
    for name, file in profile["files"].items():
        assert f"{name}: % of time" in shown, (name, shown)
        for function in file["functions"]:
            # what only allocated or waited is not in its list
            if function["n_cpu_percent_python"] + function["n_cpu_percent_c"] > 0:
                assert function["line"] in shown, (function["line"], shown)


def check_page(folder, path, profile):
    run(folder, VENV / "bin/scalene", "view", "--standalone", path)
    page = pathlib.Path(folder, "scalene-profile.html").read_text()
    assert "<script" in page
    for name in profile["files"]:
        assert json.dumps(name)[1:-1] in page, name


def check(path):
    """Valid for its model, and shown by its terminal view and its standalone page."""
    profile = json.loads(path.read_text())
    with tempfile.TemporaryDirectory() as folder:
        check_model(folder, path)
        check_terminal(folder, path, profile)
        check_page(folder, path, profile)
    print(f"{path.name}: Scalene reads it")
    return profile


def is_here():
    if (VENV / "bin/scalene").exists():
        return True
    print("skipped: no Scalene here; cmake/scalene makes it")
    return False
