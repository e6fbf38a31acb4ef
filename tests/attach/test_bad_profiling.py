"""Section 6 of the contract for a profiling run: what is wrong is said, in one sentence and before
anything is lost; the status tells; programs and profiles are as they were."""

import json
import os
import re
import shutil
import stat
import subprocess
import unittest

import harness
from harness import OWN_FAILURE, USAGE, Target, run_attach
from profiler import LOOKS_IN_ANY_CASE, FolderTest, cpu_of

from test_bad_input import as_nobody, needs_root, zombie

LAUNCHED = os.path.join(harness.PROGRAMS, "launched.py")
NOT_EXECUTABLE, NOT_FOUND = 126, 127


class ProfilingTest(FolderTest):
    def program(self, *words):
        return harness.CURRENT.command(harness.CURRENT.inner(LAUNCHED), *words)

    def launch(self, *words, output=None, env=None, **options):
        words = words if "--" in words else ("--", *words)
        return run_attach("-q", *LOOKS_IN_ANY_CASE, "-o", output or self.output, *words,
                          env=dict({"TMPDIR": self.folder}, **(env or {})), **options)

    def files(self):
        return sorted(name for name in os.listdir(self.folder) if name.endswith(".json"))

    def check_fallback(self, answer, status, *words):
        """The program ran to its end, and the profile is in the temporary folder."""
        text = answer.stderr.decode()
        self.assertEqual(answer.returncode, status, text)
        first, *between, last = text.splitlines()
        for word in ("temporary", *words):
            self.assertRegex(first, word)
        (name,) = [name for name in self.files() if name.startswith("scalene-profile-")]
        self.assertIn(name, last)
        with open(os.path.join(self.folder, name)) as file:
            self.assertTrue(json.load(file)["files"])
        return between


class Usage(ProfilingTest):
    def check_usage(self, words, *expected):
        marker = os.path.join(self.folder, "ran")
        answer = run_attach(*words, "--", "touch", marker)
        self.refuse(answer, USAGE, *expected)
        self.assertFalse(os.path.exists(marker), "nothing was run")

    def test_values(self):
        for option in ("--rate", "--duration", "--max-overhead", "--profile-interval",
                       "--cpu-percent-threshold"):
            never = option in ("--duration", "--profile-interval")
            for value in ("abc", "-1", "", "1x", "nan", "-inf", *(() if never else ("inf",))):
                self.check_usage([option + "=" + value], option, "number")
        self.check_usage(["--max-overhead=0"], "--max-overhead", "more than 0", "--nonblocking")

    def test_unknown_format(self):
        self.check_usage(["--format", "xml"], "--format", "json")

    def test_standard_output(self):
        """It is the program's; - is no file's name."""
        self.check_usage(["-o", "-"], "standard output", "--output")
        self.refuse(run_attach("merge", "-", "a.json", "b.json"), USAGE, "merge", "a file")
        self.assertFalse(os.path.exists("-"))

    def test_configuration(self):
        """Nothing runs before the file is understood."""
        path = os.path.join(self.folder, "scalene.yaml")
        for text, *expected in (("rate: 100\nprofle-all: true\n", "scalene.yaml:2", "profile-all"),
                                ("rate: fast\n", "scalene.yaml:1", "number", "fast"),
                                ("max-overhead: 0\n", "scalene.yaml:1", "more than 0"),
                                ("rate: [1\n", "scalene.yaml:1")):
            with open(path, "w") as file:
                file.write(text)
            self.check_usage(["--config", path], *expected)
        self.check_usage(["-c", path + ".missing"], "missing", "No such file")

    def test_configured(self):
        """The file takes effect, and the command line beats it."""
        path = os.path.join(self.folder, "scalene.yaml")
        with open(path, "w") as file:
            file.write(f"outfile: {self.folder}/from-file.json\nstacks: false\nquiet: true\n"
                       "cpu_only: true\ndisable-jit: true\n")
        command = self.program("0.5")
        answer = run_attach("-c", path, "--", *command)
        self.assertEqual((answer.returncode, answer.stderr), (0, b""))
        with open(os.path.join(self.folder, "from-file.json")) as file:
            profile = json.load(file)
        self.assertFalse(profile["memory"] or profile["combined_stacks"])
        answer = run_attach("-c", path, "-o", self.output, "--stacks", "--", *command)
        self.assertEqual((answer.returncode, answer.stderr), (0, b""))
        with open(self.output) as file:
            self.assertTrue(json.load(file)["combined_stacks"])

    def test_set_aside(self):
        """What is for programs that are started does not forbid to attach; the profile says so."""
        path = os.path.join(self.folder, "scalene.yaml")
        with open(path, "w") as file:
            file.write("disable-jit: true\nprofile-only:\nprofile-all: true\nquiet: true\n")
        with Target("threads.py", "spinning") as target:
            answer = run_attach("-c", path, "-o", self.output, "-d", "0.3", "--pid", target.pid)
        self.assertEqual((answer.returncode, answer.stderr), (0, b""))
        with open(self.output) as file:
            notes = json.load(file)["notes"]
        self.assertTrue([note for note in notes if "disable-jit had no effect" in note], notes)

    def test_no_value(self):
        for option in ("--output", "--rate", "--duration", "--pid", "--python"):
            self.refuse(run_attach("run", option), USAGE, option)

    def test_unknown_option_names_the_nearest(self):
        for wrong, near in (("--outptu", "--output"), ("--durations", "--duration"),
                            ("--subproceses", "--subprocesses"), ("--quit", "--quiet")):
            self.check_usage([wrong], wrong, near)

    def test_unknown_verb(self):
        self.refuse(run_attach("runn", "prog.py"), USAGE, "runn", "nearest is run")

    def test_nothing_to_run(self):
        for words in (["--"], ["run"], ["-o", self.output, "--"], ["run", "-q"]):
            self.refuse(run_attach(*words), USAGE, "program|command")


class NoProgram(ProfilingTest):
    def test_no_such_command(self):
        for words in (["no-such-command-anywhere"], [os.path.join(self.folder, "none")]):
            self.refuse(self.launch(*words), NOT_FOUND, words[0])
        self.refuse(run_attach("run", "--python", "no-such-python", "prog.py"), NOT_FOUND,
                    "no-such-python")

    def test_not_executable(self):
        plain = os.path.join(self.folder, "plain")
        with open(plain, "w") as file:
            file.write("print(1)\n")
        self.refuse(self.launch(plain), NOT_EXECUTABLE, plain, "executable")
        self.refuse(self.launch(self.folder), NOT_EXECUTABLE, "folder")

    def test_no_interpreter(self):
        script = os.path.join(self.folder, "script")
        with open(script, "w") as file:
            file.write("#!/no/such/interpreter\n")
        os.chmod(script, 0o755)
        self.refuse(self.launch(script), NOT_FOUND, script, "interpreter")


class NothingToShow(ProfilingTest):
    """Why, and what to type instead; a profile that was there stays."""

    def check_nothing(self, answer, status, *words):
        text = answer.stderr.decode()
        self.assertEqual(answer.returncode, status, text)
        self.assertRegex(text, r"\Ascalene-attach: nothing to show: ")
        for word in words:
            self.assertRegex(text, word)

    def test_ends_at_once(self):
        with open(self.output, "w") as file:
            file.write("a profile")
        self.check_nothing(self.launch("true"), OWN_FAILURE, "no Python ran")
        self.check_nothing(self.launch("false"), 1, "no Python ran")
        answer = run_attach("-q", "-o", self.output, "--profile-only", "elsewhere", "--",
                            *harness.CURRENT.command("-c", "pass"))
        self.check_nothing(answer, OWN_FAILURE)
        self.assertEqual(harness.read_text(self.output), "a profile")
        self.assertEqual(self.files(), ["profile.json"])

    def test_not_followed(self):
        """Who wants no children hears that the Python was one."""
        shell = ["sh", "-c", '"$@"; true', "sh"]
        answer = self.launch("--no-subprocesses", "--", *shell, *self.program("0.6"))
        self.check_nothing(answer, OWN_FAILURE, r"\(sh\): not a Python\n",
                           r"below it.*--no-subprocesses\): \d+ \(\S*python")

    def test_waits_in_virtual_time(self):
        """It was met on a line, and that has no time: no profile, and what there was stays."""
        with open(self.output, "w") as file:
            file.write("a profile")
        with Target("stacks.py", "plain") as target:
            answer = run_attach("-q", "-o", self.output, "-d", "0.3", "--use-virtual-time",
                                "--pid", target.pid)
        self.check_nothing(answer, OWN_FAILURE, r"only waited, in:\n  \S+\.py:\d+\n",
                           "leave out --use-virtual-time")
        self.assertEqual(harness.read_text(self.output), "a profile")

    def follow(self, options, program):
        """Types what it says to type instead, and sees lines."""
        answer = self.launch(*options, "--", *program)
        self.check_nothing(answer, OWN_FAILURE, "files that are not shown")
        text = answer.stderr.decode()
        wrong = "".join(re.findall(r"[Ll]eave out .*?[.;]\n?", text))
        instead = [option for option in options if option.split("=")[0] not in wrong]
        if "with --profile-all" in text:
            instead.append("--profile-all")
        self.assertNotEqual(instead, options)
        answer = self.launch(*instead, "--", *program)
        self.assertEqual((answer.returncode, answer.stderr), (0, b""), instead)
        lines = [line for file in self.profile()["files"].values() for line in file["lines"]]
        self.assertGreater(sum(cpu_of(line) + line["idle_s"] for line in lines), 0.05)
        os.unlink(self.output)

    def test_hidden_by_the_filter(self):
        program = self.program("0.1")
        code = "import json\nfor _ in range(99999): json.loads('1')"
        library = harness.CURRENT.command("-c", code)
        self.follow(["--profile-only=elsewhere"], program)
        self.follow(["--profile-only=elsewhere", "--profile-all"], program)
        self.follow(["--profile-exclude=launched.py"], program)
        self.follow(["--profile-only=launched", "--profile-exclude=.py", "--profile-all"], program)
        self.follow(["--profile-only=json"], library)


class NoTarget(ProfilingTest):
    def check_refused(self, pid, *words, options=()):
        self.refuse(run_attach("-o", self.output, "--pid", pid, *options), OWN_FAILURE, *words)
        self.assertEqual(self.files(), [])

    def test_no_such_process(self):
        with subprocess.Popen(["true"]) as process:
            pass
        self.check_refused(process.pid, process.pid, "no ")

    def test_zombie(self):
        process = subprocess.Popen(["true"])
        harness.until(lambda: zombie(process.pid), "a zombie")
        try:
            self.check_refused(process.pid, process.pid, "ended")
        finally:
            process.wait()

    def test_no_python(self):
        for _ in range(10):  # some of them while the loader is at work
            with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as cat:
                self.check_refused(cat.pid, cat.pid, r"\bcat\b", "python")
                cat.stdin.close()
            self.assertEqual(cat.returncode, 0)

    def test_python_below(self):
        """Children are followed; where they are not wanted, it says which are Pythons."""
        shell = ["sh", "-c", '"$@"; true', "sh"]
        with Target("threads.py", "spinning", prefix=shell) as target:
            top, below = target.pid, target.descend()
            self.check_refused(top, r"\b%d\b" % below, options=["--no-subprocesses"])
            answer = run_attach("-q", "-o", self.output, "-d", "0.3", "--pid", top)
            self.assertEqual((answer.returncode, answer.stderr), (0, b""))
            with open(self.output) as file:
                rows = {each["pid"]: each["note"] for each in json.load(file)["processes"]}
            self.assertEqual(rows, {top: "not a Python", below: None})

    def test_one_of_several(self):
        with subprocess.Popen(["true"]) as process:
            pass
        with Target("stacks.py", "plain") as target:
            self.check_refused(target.pid, process.pid, options=["--pid", process.pid])

    @needs_root
    def test_not_allowed(self):
        program = shutil.copy(harness.SCALENE_ATTACH, self.folder)
        with Target("stacks.py", "plain") as target:
            answer = run_attach("-o", self.output, "--pid", target.pid, prefix=as_nobody(),
                                program=program, cwd="/")
            self.refuse(answer, OWN_FAILURE, target.pid, "user|uid", "root|0")

    def test_ends_while_it_is_looked_at(self):
        """Whenever that is: a profile or a reason."""
        for turn in range(6):
            with Target("threads.py", "many", "20") as target:
                attach = harness.start_attach("-q", "-o", self.output, "-p", target.pid)
                for _ in range(turn * turn * 300):
                    os.getppid()
                target.kill()
                error = attach.communicate(timeout=harness.PATIENCE_S)[1].decode()
            self.assertIn(attach.returncode, (0, OWN_FAILURE), error)
            if attach.returncode:
                self.assertRegex(error, r"\Ascalene-attach: ")


@unittest.skipUnless(shutil.which("strace"), "there is no strace")
class Traced(ProfilingTest):
    """Whoever is traced already cannot be paused by us."""

    STRACE = ("strace", "-f", "-o", "/dev/null", "-e", "trace=none")

    def test_attached(self):
        with Target("threads.py", "spinning", prefix=self.STRACE) as target:
            tracer, traced = target.pid, target.descend()
            answer = run_attach("-o", self.output, "-p", traced, "-d", "0.2")
            self.refuse(answer, OWN_FAILURE, "process %d:" % traced,
                        r"process %d \(strace\) traces it" % tracer, "--nonblocking")
            self.assertEqual(self.files(), [])
            answer = run_attach("-q", "-o", self.output, "-p", traced, "-d", "0.3",
                                "--nonblocking")
            self.assertEqual((answer.returncode, answer.stderr), (0, b""))
            self.assertEqual([each["note"] for each in self.profile()["processes"]], [None])

    def test_launched(self):
        """Nobody knows what it did, and no line is said to have done it."""
        answer = self.launch("--cpu-only", "--", *self.STRACE, *self.program("0", "turns", "40"))
        self.assertEqual((answer.returncode, answer.stderr), (0, b""))
        profile = self.profile()
        (python,) = [each for each in profile["processes"] if each["python"]]
        self.assertRegex(python["note"], r"\Atraced by \d+ \(strace\): .*could not be looked at")
        self.assertRegex(" ".join(profile["notes"]), "% of the looks found no whole stack")
        self.assertGreater(python["cpu_s"], 0.7)
        lines = [line for file in profile["files"].values() for line in file["lines"]]
        self.assertTrue(any("time.sleep" in line["line"] and line["idle_s"] for line in lines))
        self.assertLess(sum(cpu_of(line) for line in lines), 0.2 * python["cpu_s"])


class Output(ProfilingTest):
    def test_missing_folder(self):
        """Said before the program runs."""
        missing = os.path.join(self.folder, "missing", "profile.json")
        answer = self.launch("sh", "-c", 'echo running >&2; "$@"', "sh",
                             *self.program("0.15", "exit", "4"), output=missing)
        self.assertEqual(self.check_fallback(answer, 4, missing), ["running"])

    def test_a_folder_in_its_place(self):
        self.check_fallback(self.launch(*self.program("0.15"), output=self.folder), 0, "directory")

    @needs_root
    def test_folder_of_others(self):
        closed = os.path.join(self.folder, "closed")
        os.mkdir(closed, 0o755)
        program = shutil.copy(harness.SCALENE_ATTACH, self.folder)
        answer = self.launch("sh", "-c", "exit 6", prefix=as_nobody(), program=program, cwd="/",
                             output=os.path.join(closed, "profile.json"))
        self.assertEqual(answer.returncode, 6)
        self.assertRegex(answer.stderr.splitlines()[0], b"closed/profile.json.*Permission denied")

    @needs_root
    def test_full_disk(self):
        full = os.path.join(self.folder, "full")
        os.mkdir(full)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", full], check=True)
        try:
            answer = self.launch(*self.program("0.15", "exit", "4"),
                                 output=os.path.join(full, "profile.json"))
            self.assertEqual(os.listdir(full), [], "half a profile is none")
        finally:
            subprocess.run(["umount", full], check=True)
        self.assertEqual(answer.returncode, 4)
        self.assertRegex(answer.stderr, b"No space left on device; it went to .*scalene-profile-")
        self.assertEqual(len(self.files()), 1)

    @needs_root
    def test_device(self):
        """It is written to, not replaced."""
        full = os.path.join(self.folder, "full")
        os.mknod(full, stat.S_IFCHR | 0o600, os.makedev(1, 7))  # as /dev/full
        answer = self.launch(*self.program("0.15"), output=full)
        self.assertEqual(answer.returncode, 0)
        self.assertRegex(answer.stderr, b"full .*No space left on device; it went to ")
        self.assertTrue(stat.S_ISCHR(os.stat(full).st_mode))

    def test_pipe(self):
        pipe = os.path.join(self.folder, "pipe")
        os.mkfifo(pipe)
        with open(self.output, "wb") as into:
            reader = subprocess.Popen(["cat", pipe], stdout=into)
        answer = self.launch(*self.program("0.15"), output=pipe)
        self.assertEqual((answer.returncode, answer.stderr), (0, b""))
        self.assertEqual(reader.wait(harness.PATIENCE_S), 0)
        self.assertTrue(json.loads(harness.read_text(self.output))["files"])

    def test_nowhere_at_all(self):
        answer = self.launch(*self.program("0.15"), output="/no/such/folder/profile.json",
                             env={"TMPDIR": "/no/such/place"})
        self.assertEqual(answer.returncode, OWN_FAILURE)
        self.assertRegex(answer.stderr.splitlines()[-1], b"neither /no/such/folder.* nor /no/such")


if __name__ == "__main__":
    harness.main()
