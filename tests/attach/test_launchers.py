"""Programs that start Pythons in their own way, from the environment that cmake/launchers makes:
what their workers did is in the one profile. It has one interpreter, so one release is enough."""

import os
import signal
import socket
import subprocess

import harness
from harness import OWN_FAILURE, PROGRAMS, Target, run_attach
from profiler import Profiler
from test_launch import LaunchTest as Launching

CACHE = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
BUNDLING_S = 180
TOOLS = os.path.join(CACHE, "scalene-attach", "launchers-venv")


def tool(name):
    return os.path.join(TOOLS, "bin", name)


def is_listening(path):
    """Its file is there a moment before it takes connections."""
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(path) == 0


class Launchers(Launching):
    def setUp(self):
        super().setUp()
        if not os.path.exists(os.path.join(TOOLS, "complete")):
            self.skipTest("cmake/launchers found no way to the Python index")
        if os.path.realpath(tool("python")) != harness.CURRENT.executable:
            self.skipTest("the environment of cmake/launchers has another interpreter")

    def check_workers(self, profile, seconds):
        """What launched.burn() used, and in how many processes."""
        (name,) = [name for name in profile["files"] if name.endswith("/launched.py")]
        (burn,) = [each for each in profile["files"][name]["functions"] if each["line"] == "burn"]
        used = sum(burn[kind] for kind in ("cpu_python_s", "cpu_native_s", "cpu_kernel_s"))
        self.assertGreater(used, 0.5 * seconds)
        self.assertGreaterEqual(sum(each["cpu_s"] for each in profile["processes"]), seconds)
        return burn["n_processes"]

    def test_pytest_with_two_workers(self):
        answer = self.run_words(*self.options("--"), tool("pytest"), "-q", "-n", "2", "-p",
                                "no:cacheprovider", "--dist", "each",
                                os.path.join(PROGRAMS, "test_burning.py"), cwd=self.folder)
        self.assertEqual((answer.returncode, answer.stderr), (0, b""), answer.stdout)
        self.assertIn(b"4 passed", answer.stdout)
        self.assertEqual(self.check_workers(self.profile(), 4 * 0.3), 2)

    def ask(self, path):
        """One request to the server, and which process answered."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(harness.PATIENCE_S)
            connection.connect(path)
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            answer = b""
            while True:
                more = connection.recv(65536)
                if not more:
                    break
                answer += more
        self.assertTrue(answer.startswith(b"HTTP/1.0 200"), answer)
        return int(answer.rpartition(b"\r\n")[2])

    def gunicorn(self):
        return [tool("gunicorn"), "--workers", "2", "--bind", "unix:" + self.socket(), "--chdir",
                PROGRAMS, "--log-level", "warning", "served:application"]

    def socket(self):
        return os.path.join(self.folder, "socket")

    def end_on_its_own(self, process):
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        return process

    def check_served(self, profiler, number):
        requests = 6
        served = {self.ask(self.socket()) for _ in range(requests)}
        profiler.send_signal(number)
        _, error = profiler.communicate(timeout=harness.PATIENCE_S)
        self.assertEqual(profiler.returncode, 0, error)
        profile = self.profile()
        self.assertLessEqual(served, {each["pid"] for each in profile["processes"]})
        self.check_workers(profile, requests * 0.1)

    def test_gunicorn(self):
        server = self.end_on_its_own(harness.start_attach(
            "-q", "-o", self.output, "--", *self.gunicorn(), cwd=self.folder,
            env={"PYTHONDONTWRITEBYTECODE": "1"}))
        harness.until(lambda: is_listening(self.socket()), "a server")
        self.check_served(server, signal.SIGTERM)

    def test_attach_to_gunicorn(self):
        """Where its script stands tells nothing of where the application does."""
        server = self.end_on_its_own(subprocess.Popen(
            self.gunicorn(), cwd=self.folder, env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"),
            preexec_fn=harness.allow_any_tracer))
        harness.until(lambda: is_listening(self.socket()), "a server")
        self.ask(self.socket())  # the workers are there
        with Profiler(self, "-q", "--pid", server.pid) as profiler:
            profiler.await_samples(server.pid)
            self.output = profiler.output
            self.check_served(profiler.process, signal.SIGINT)
        self.ask(self.socket())

    def check_dump(self, program, *command):
        """Who asks for the launcher is told of the Python below it, and can look there."""
        with Target(program, "nested", command=command, env={"TMPDIR": self.folder}) as target:
            launcher = target.pid
            self.assertNotEqual(target.descend(), launcher)
            name = os.path.basename(os.readlink("/proc/%d/exe" % launcher))
            answer = run_attach("dump", "--pid", launcher)
            self.refuse(answer, OWN_FAILURE, launcher, r"no python: it runs [^,]+/%s," % name,
                        r"look there: --pid %d\b" % target.pid)
            self.check_truth(target, self.dump(target))
            self.check_truth(target, self.dump(target, "--native"))

    def test_dump_of_uv_run(self):
        self.check_dump("stacks.py", tool("uv"), "run", "--quiet", "--offline", "--no-project",
                        "--python", tool("python"))

    def test_dump_of_a_one_file_bundle(self):
        """PyInstaller's: the first process unpacks an interpreter and starts it."""
        if not os.path.exists(tool("pyinstaller")):
            self.skipTest("the environment of cmake/launchers is from before it had PyInstaller")
        bundle = os.path.join(self.folder, "bundle")
        made = subprocess.run(
            [tool("pyinstaller"), "--onefile", "--name", "bundle", "--distpath", self.folder,
             "--workpath", os.path.join(self.folder, "work"), "--specpath", self.folder,
             os.path.join(PROGRAMS, "stacks.py")],
            env=dict(os.environ, PYINSTALLER_CONFIG_DIR=os.path.join(self.folder, "config")),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=BUNDLING_S)
        self.assertEqual(made.returncode, 0, made.stdout.decode())
        self.check_dump(bundle, "env")

    def uv_run(self, *options):
        return self.run_words(harness.SCALENE_ATTACH, "-q", *options, "-o", self.output, "--",
                              tool("uv"), "run", "--quiet", "--offline", "--no-project",
                              "--python", tool("python"), os.path.join(PROGRAMS, "launched.py"),
                              "0.1", "exit", "5", cwd=self.folder)

    def test_uv_run(self):
        answer = self.uv_run()
        self.assertEqual((answer.returncode, answer.stderr), (5, b""))
        self.assertEqual(self.check_workers(self.profile(), 0.1), 1)
        rows = {os.path.basename(each["executable"]): each["note"]
                for each in self.profile()["processes"]}
        self.assertEqual(rows["uv"], "not a Python")

    def test_ends_are_told_at_once(self):
        """A child that is traced while it ends shows as ended by its pidfd, but not to who waits
        for it: uv panics then. A thousand looks a second met one in three so, before they spared
        those that are about to end; what is left is one in hundreds."""
        times, fewest = 20, 18
        answers = [self.uv_run("--max-overhead", "100") for _ in range(times)]
        whole = [answer for answer in answers if (answer.returncode, answer.stderr) == (5, b"")]
        self.assertGreaterEqual(len(whole), fewest, [answer.stderr for answer in answers])


if __name__ == "__main__":
    harness.main()
