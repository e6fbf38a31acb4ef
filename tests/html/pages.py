"""Pages of the golden profiles, and of one whose every text was chosen to spoil a page; what a
parser of HTML finds in them."""

import html.parser
import json
import os
import pathlib
import subprocess

TOP = pathlib.Path(__file__).parent.parent.parent
GOLDEN = TOP / "tests" / "golden" / "profile"
FORMATS = TOP / "tests" / "golden" / "format.txt"
SCRIPTS = TOP / "output" / "html"
PROFILES = ("shop.json", "memory.json", "marked.json", "merged.json")

SPOILT = "spoilt"
ATTACKS = (f"</script><script>document.title='{SPOILT}'</script>",
           f"<img src=x onerror=\"document.title='{SPOILT}'\">",
           f"</title></code></td><svg onload=\"document.title='{SPOILT}'\">",
           "<!--<script>", "]]>", "{{script}}", "&lt;b&gt;\\u003cb\\u003e",
           "\x1b]0;title\x07\x1b[2J", "\u202eright to left\u202c \u2066x\u2069",
           "line\u2028separator\u2029", "'\"`${document.title}`", "\x00\x7f\x9b", "=1+1", "a\tb")


def golden_text(name):
    """As if an older version than any had written it."""
    return (GOLDEN / name).read_text().replace('"version": "1.2.3"', '"version": "0.0.1"')


# A value of each kind that has something to say.
SAYING = {"spark": [[0, 1.0], [1, 2.0]], "moments": [1.5], "texts": ["Task-1"], "flag": True,
          "waits": {"lock": 1.5}, "native": [{"symbol": "f", "module": "m.so", "seconds": 1.0}],
          "source": "x = 1\n", "text": "x"}


def whole_profile():
    """A profile whose first line has something to say in every column."""
    profile = json.loads(golden_text("shop.json"))
    line = next(iter(profile["files"].values()))["lines"][0]
    for column in profile["columns"]:
        if column["kind"] != "line":
            line[column["key"]] = SAYING.get(column["kind"], 7)
    return profile


def hot_profile():
    """Of one file, with a line for each reason to be hot, and one beside it that is not; and which
    are."""
    reasons = {"n_cpu_percent_python": 1, "n_cpu_percent_c": 1, "n_sys_percent": 1,
               "n_gpu_percent": 1, "n_usage_fraction": 0.01}
    profile = json.loads(golden_text("memory.json"))
    path, file = next(iter(profile["files"].items()))
    blank = {**file["lines"][0], **dict.fromkeys(reasons, 0)}
    values = [{key: percent * unit} for key, unit in reasons.items() for percent in (33.5, 32.5)]
    values.append({"n_cpu_percent_python": 12, "n_cpu_percent_c": 12, "n_sys_percent": 12})
    lines = [{**blank, "lineno": number, "line": f"x{number} = 1\n", **value}
             for number, value in enumerate(values, 1)]
    profile["files"] = {path: {**file, "lines": lines, "functions": [], "leaks": {}}}
    return profile, {1, 3, 5, 7, 9, 11}


def spoil(value, attack):
    """Every text of the profile says the attack, too; keys of files are texts."""
    if isinstance(value, str):
        return value + attack
    if isinstance(value, list):
        return [spoil(item, attack) for item in value]
    if isinstance(value, dict):
        return {key: spoil(item, attack) for key, item in value.items()}
    return value


def spoilt_profile():
    """A profile with an attack in each line, name, path, note and argument."""
    profile = json.loads(golden_text("shop.json"))
    attacks = " ".join(ATTACKS)
    for key in ("program", "args", "processes", "threads", "notes", "stacks", "combined_stacks"):
        profile[key] = spoil(profile[key], attacks)
    for number, file in enumerate(profile["files"].values()):
        for line in file["lines"]:
            line["line"] = ATTACKS[(line["lineno"] + number) % len(ATTACKS)] + line["line"]
        file["functions"] = spoil(file["functions"], attacks)
        file["imports"] = spoil(file["imports"], attacks)
    profile["files"] = {path + attacks: file for path, file in profile["files"].items()}
    return profile


def run(*words, folder):
    """The program's standard error; it has to succeed."""
    done = subprocess.run([os.environ["SCALENE_ATTACH"], *words], cwd=folder, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


class Page(html.parser.HTMLParser):
    """What there is on a page: elements, the texts of scripts, the policy, cells by table."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.scripts, self.styles, self.rows = [], [], [], {}
        self.keys, self.codes, self.hot = set(), [], set()
        self.policy = self.title = self.facts = ""
        self.summaries, self.items = [], []
        self.data = None
        self.open, self.table, self.attributes = [], None, {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        self.attributes = attributes
        if tag not in ("meta", "link", "img", "br"):
            self.open.append((tag, attributes))
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]
        if tag == "tbody":
            self.table = attributes.get("class")
        if tag == "tr" and self.table is not None:
            self.rows[self.table] = self.rows.get(self.table, 0) + 1
            if attributes.get("class") == "hot":
                self.hot.add((self.table, self.rows[self.table]))
        if "data-key" in attributes:
            self.keys.add(attributes["data-key"])
        if tag == "code":
            self.codes.append("")

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass
        if tag == "tbody":
            self.table = None

    def handle_data(self, data):
        tag, attributes = self.open[-1] if self.open else ("", {})
        if tag == "script" and attributes.get("type") == "application/json":
            self.data = (self.data or "") + data
        elif tag == "script":
            self.scripts.append(data)
        elif tag == "style":
            self.styles.append(data)
        elif tag == "title":
            self.title += data
        elif tag == "code":
            self.codes[-1] += data
        elif tag == "dd":
            self.facts += data + "\n"
        elif tag == "summary":
            self.summaries.append(data)
        elif tag == "li":
            self.items.append(data)
