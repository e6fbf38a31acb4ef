"""The interpreters of this machine, what their files are, and how a target's files are called in
the root folder of one that has its own.

SCALENE_INTERPRETERS names a file with a JSON list of {release, python, root, origin}; without it
they are looked for in pyenv, PATH and the cache folder."""

import ctypes
import glob
import json
import os
import re
import struct
import subprocess
import tempfile

PATIENCE_S = 60  # a step that takes longer has failed, on any machine
PROGRAMS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "programs")
CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
INNER_PROGRAMS = "/mnt"  # where PROGRAMS appears in an interpreter's root folder


class Interpreter:
    def __init__(self, release, python, root=None, origin=""):
        self.release, self.python, self.root, self.origin = release, python, root, origin
        digits = re.match(r"(\d+)\.(\d+)(t?)", release)
        self.version = (int(digits.group(1)), int(digits.group(2)))
        self.free_threaded = bool(digits.group(3))

    def __str__(self):
        return "%s (%s%s)" % (self.release, self.root or "", self.python)

    def command(self, *arguments):
        chroot = ["chroot", self.root] if self.root else []
        return chroot + [self.python, *arguments]

    def inner(self, path):
        """How a path in PROGRAMS or in the temporary folder is called inside the root folder."""
        if not self.root:
            return path
        if path.startswith(PROGRAMS):
            return INNER_PROGRAMS + path[len(PROGRAMS):]
        return "/tmp" + path[len(tempfile.gettempdir()):]

    def with_numpy(self):
        """What the environment of a program says that is to find what cmake/numpy fetched."""
        home = "/opt" if self.root else os.path.join(CACHE, "scalene-attach")
        folder = os.path.join(home, "numpy-" + self.release)
        return {"PYTHONPATH": folder} if os.path.isdir(self.outer(folder)) else {}

    def outer(self, path):
        return (self.root or "") + path

    def inner_of(self, path):
        """The other way round than outer()."""
        return path[len(self.root or ""):]

    def ask(self, expression):
        """The value of an expression in this interpreter (sys, sysconfig and os are imported)."""
        code = "import json, os, sys, sysconfig; print(json.dumps(%s))" % expression
        output = subprocess.run(self.command("-c", code), stdout=subprocess.PIPE, check=True)
        return json.loads(output.stdout)

    def config(self, name):
        return self.ask("sysconfig.get_config_var(%r)" % name)

    @property
    def executable(self):
        """The outer path of the real file."""
        return self.outer(self.ask("os.path.realpath(sys.executable)"))

    @property
    def shared_library(self):
        """The outer path of the libpython that the executable needs, or None in a static build."""
        code = "[line.split()[-1] for line in open('/proc/self/maps') if 'libpython' in line]"
        mapped = self.ask(code)
        return self.outer(mapped[0]) if mapped else None


def probe_interpreter(python, root=None, origin=""):
    code = (
        "import sys, sysconfig; free = sysconfig.get_config_var('Py_GIL_DISABLED');"
        "print('%d.%d%s' % (sys.version_info[0], sys.version_info[1], 't' if free else ''))"
    )
    interpreter = Interpreter("0.0", python, root, origin)
    try:
        answer = subprocess.run(
            interpreter.command("-c", code),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE_S,
        )
    except OSError:
        return None
    release = answer.stdout.decode().strip()
    return Interpreter(release, python, root, origin) if release else None


def discover_interpreters():
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    cache = os.path.join(
        os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "scalene-attach"
    )
    places = [(path, None, "pyenv") for path in sorted(glob.glob(pyenv + "/versions/*/bin/python"))]
    for folder in os.environ["PATH"].split(":"):
        if not folder.startswith(pyenv):
            found = glob.glob(folder + "/python3*") + glob.glob(folder + "/python2*")
            named = [path for path in found if re.search(r"/python\d(\.\d+)?t?$", path)]
            places += [(path, None, "path") for path in sorted(named)]
    sid = os.path.join(cache, "sid")
    inside = [path[len(sid):] for path in glob.glob(sid + "/usr/bin/python3.*")]
    if os.geteuid() == 0:
        places += [(path, sid, "sid") for path in inside if re.search(r"\d$", path)]
    for path in glob.glob(cache + "/python-*t/bin/python3"):
        places.append((path, None, "cache"))

    found, seen = [], set()
    for path, root, origin in places:
        real = os.path.realpath((root or "") + path)
        if real not in seen:
            seen.add(real)
            found.append(probe_interpreter(path, root, origin))
    return [interpreter for interpreter in found if interpreter]


def interpreters():
    """All of this machine, each release's possibly more than once."""
    listed = os.environ.get("SCALENE_INTERPRETERS")
    if listed is None:
        return discover_interpreters()
    with open(listed, encoding="utf-8") as file:
        rows = json.load(file)
    return [
        Interpreter(row["release"], row["python"], row.get("root"), row.get("origin", ""))
        for row in rows
    ]


def enter_own_mounts():
    """Mounts made for the root folders are seen by this process and its children alone."""
    clone_newns = 0x20000
    if os.geteuid() == 0 and ctypes.CDLL(None, use_errno=True).unshare(clone_newns) == 0:
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)


def mount_into(root):
    """proc, devices, the programs and the temporary folder, inside a root folder."""
    if os.path.ismount(root + INNER_PROGRAMS):
        return
    subprocess.run(["mount", "-t", "proc", "proc", root + "/proc"], check=True)
    for source, inner in (
        ("/dev", "/dev"),
        (PROGRAMS, INNER_PROGRAMS),
        (tempfile.gettempdir(), "/tmp"),
    ):
        subprocess.run(["mount", "--rbind", source, root + inner], check=True)


def has_symbols(path):
    """Has it a .symtab, with the functions that are not exported too?"""
    with open(path, "rb") as file:
        image = file.read()
    (offset,) = struct.unpack_from("<Q", image, 0x28)
    size, count = struct.unpack_from("<HH", image, 0x3A)
    sht_symtab = 2
    kinds = [struct.unpack_from("<I", image, offset + n * size + 4)[0] for n in range(count)]
    return sht_symtab in kinds


def drop_section_headers(path):
    """As some packers leave a file: e_shoff, e_shnum and e_shstrndx are 0."""
    with open(path, "r+b") as file:
        file.seek(0x28)
        file.write(bytes(8))
        file.seek(0x3C)
        file.write(bytes(4))
