"""A profiler that runs while a test looks at it: its output file and its runtime folder are its
own, and so it is steered by nobody else."""

import json
import os
import signal
import tempfile

import harness
from harness import PATIENCE_S, PROGRAMS, run_attach, until

FINE_RATE = ("--rate", "500", "--max-overhead", "50")
# Of a program of 0.1 s: within the usual budget one slow pause would be its last.
LOOKS_IN_ANY_CASE = ("--max-overhead", "100")


class FolderTest(harness.AttachTest):
    """Its profile goes to a folder of its own, which any user may write to."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="profile-")
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o777)
        self.folder = folder.name
        self.output = os.path.join(folder.name, "profile.json")

    def profile(self):
        with open(self.output) as file:
            return json.load(file)


class Profiler:
    def __init__(self, test, *words, **options):
        self.test = test
        self.words = words
        self.options = options
        self.folder = tempfile.TemporaryDirectory()
        self.output = os.path.join(self.folder.name, "profile.json")
        self.env = {"XDG_RUNTIME_DIR": self.folder.name}

    def __enter__(self):
        self.process = harness.start_attach("-o", self.output, *self.words, env=self.env,
                                            preexec_fn=be_a_job, **self.options)
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        self.folder.cleanup()

    def ask(self, verb, pid, *options):
        return run_attach(verb, "--pid", pid, *options, env=self.env)

    def tell(self, verb, pid):
        """The one sentence that a command ends with."""
        answer = self.ask(verb, pid)
        text = answer.stderr.decode()
        self.test.assertEqual(answer.returncode, 0, text)
        self.test.assertEqual(answer.stdout, b"")
        self.test.assertRegex(text, r"\Ascalene-attach: [^\n]+\n\Z")
        return text

    def status(self, pid):
        answer = self.ask("status", pid, "--json")
        self.test.assertEqual(answer.returncode, 0, answer.stderr)
        return json.loads(answer.stdout.decode())

    def await_listening(self, pid):
        until(lambda: self.ask("status", pid).returncode == 0 or self.has_failed(), "a profiler")

    def await_samples(self, pid, more_than=0):
        self.await_listening(pid)
        until(lambda: self.status(pid)["sampling"]["samples"] > more_than, "samples")

    def await_more_samples(self, pid):
        self.await_samples(pid, self.status(pid)["sampling"]["samples"])

    def await_function(self, pid, name):
        """Until it has CPU time; the profile that told is taken away again."""
        self.await_listening(pid)
        until(lambda: self.ask("flush", pid).returncode == 0 and
              cpu_of(function_of(self.profile(), name)) > 0, "CPU time of %s" % name)
        os.unlink(self.output)

    def has_failed(self):
        if self.process.poll() is not None:
            raise AssertionError(self.process.stderr.read())
        return False

    def end(self, status=0):
        """What it said at its end, which it comes to by itself."""
        _, error = self.process.communicate(timeout=PATIENCE_S)
        self.test.assertEqual(self.process.returncode, status, error)
        return error.decode()

    def profile(self):
        with open(self.output, encoding="utf-8") as file:
            return json.load(file)


def be_a_job():
    """It hears interrupts, also where we ourselves run in the background of a shell, which lets its
    jobs ignore them; and is in a group of its own, as SIGTSTP stops nobody whom no shell can wake.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.setpgid(0, 0)


def attached(test, target, *words):
    return Profiler(test, "--pid", target.pid, *words)


class Launched(Profiler):
    """It starts steered.py itself, or by what stands in front, and that tells its own pid."""

    def __init__(self, test, case, *options, prefix=()):
        self.go_read, self.go = os.pipe()
        self.ready, self.ready_write = os.pipe()
        script = harness.CURRENT.inner(os.path.join(PROGRAMS, "steered.py"))
        pipes = (self.go_read, self.ready_write)
        command = [*prefix, *harness.CURRENT.command(script, case)]
        super().__init__(test, *FINE_RATE, *options, "--", *command, pass_fds=pipes)
        self.env["TARGET_PIPES"] = "%d,%d" % (self.ready_write, self.go_read)

    def __enter__(self):
        super().__enter__()
        self.heard = os.fdopen(self.ready)
        os.close(self.ready_write)
        os.close(self.go_read)
        self.pid = json.loads(self.heard.readline())["pid"]
        return self

    def __exit__(self, *failure):
        os.close(self.go)
        self.heard.close()
        super().__exit__(*failure)

    def step(self):
        os.write(self.go, b"x")
        self.test.assertIn("done", self.heard.readline())


def function_of(profile, name):
    """What the profile has of a function; {} when it knows none of that name."""
    found = [function for file in profile["files"].values() for function in file["functions"]
             if function["line"] == name]
    return found[0] if found else {}


def cpu_of(numbers):
    return sum(numbers.get("cpu_%s_s" % kind, 0) for kind in ("python", "native", "kernel"))


def step(target):
    """The next step of phases.py: the CPU seconds that it used."""
    os.write(target.go, b"x")
    return target.hear()["cpu_s"]
