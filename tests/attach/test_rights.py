"""What a program and its children may do when we have launched it: all that they may without us.
Launching itself needs no rights."""

import os
import shutil

import harness
from harness import PROGRAMS
from launching import BURN, BURN_S, LaunchTest

NOBODY = 65534
YAMA = "/proc/sys/kernel/yama/ptrace_scope"


class Unprivileged(LaunchTest):
    """A child of ours needs no privilege: neither root nor, under Yama, more than scope 1."""

    def as_nobody(self, *options):
        """The words that begin a run as a user who has no rights at all."""
        if os.geteuid() != 0:
            self.skipTest("needs root to become somebody else")
        words = ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups",
                 "--inh-caps=-all", *options]
        tried = [*words, "sh", "-c", 'exec "$0" -c ""', harness.CURRENT.python]
        if harness.CURRENT.root or self.run_words(*tried).returncode:
            self.skipTest("another user cannot run this interpreter")
        return words

    def profiled(self):
        program = shutil.copy(harness.SCALENE_ATTACH, self.folder)
        return [program, *self.options()[1:], "--", harness.CURRENT.python]

    def launch_as_nobody(self):
        script = shutil.copy(os.path.join(PROGRAMS, "launched.py"), self.folder)
        answer = self.run_words(*self.as_nobody("--bounding-set=-all"), *self.profiled(), script,
                                "0.15", "exit", "3", cwd="/")
        self.assertEqual((answer.returncode, answer.stderr), (3, b""))
        self.check_burnt(0.15)

    def test_child_with_rights_of_its_own(self):
        """As `sudo` in a script. The kernel takes them from who is traced while it execs."""
        own = shutil.copy(shutil.which("id"), self.folder)
        os.chmod(own, 0o4755)
        as_nobody = self.as_nobody()
        if self.run_words(*as_nobody, own, "-u").stdout != b"0\n":
            self.skipTest("programs in %s have no rights of their own" % self.folder)
        script = "import subprocess; subprocess.run([%r, '-u'])" % own
        for option in ((), ("--cpu-only",)):
            words = self.profiled()
            words[1:1] = option
            answer = self.run_words(*as_nobody, *words, "-c", script + BURN, cwd="/")
            self.assertEqual((answer.returncode, answer.stdout, answer.stderr), (0, b"0\n", b""))

    def test_as_another_user(self):
        self.launch_as_nobody()

    def test_under_yama(self):
        try:
            with open(YAMA) as file:
                before = file.read()
        except OSError:
            self.skipTest("this kernel has no Yama")
        try:
            with open(YAMA, "w") as file:
                file.write("1")
        except OSError as error:
            self.skipTest("Yama cannot be set here: %s" % error)
        try:
            self.launch_as_nobody()
        finally:
            with open(YAMA, "w") as file:
                file.write(before)


class Tracers(LaunchTest):
    def test_child_with_a_tracer_of_its_own(self):
        """A process has one tracer alone: here the program's own, not us."""
        strace = shutil.which("strace")
        if not strace or harness.CURRENT.root:
            self.skipTest("needs strace where the interpreter is")
        child = self.python("-c", "print('traced')" + BURN)
        traced = [strace, "-f", "-qq", "-e", "trace=none", "-o", os.devnull, *child]
        script = "import subprocess, sys; sys.exit(subprocess.run(%r).returncode)" % traced
        answer = self.run_words(*self.options("--"), *self.python("-c", script))
        self.assertEqual((answer.returncode, answer.stdout, answer.stderr), (0, b"traced\n", b""))
        processes = self.profile()["processes"]
        (found,) = [each for each in processes if each["argv"] == child]
        self.assertGreater(found["cpu_s"], BURN_S / 2)
        # what it used before it became the program, or we heard of that, is the tracer's child's
        used_s = sum(each["cpu_s"] for each in processes if each["pid"] == found["pid"])
        self.assertGreaterEqual(used_s, 0.9 * BURN_S)


class Strangers(LaunchTest):
    """Who cannot have the shim runs as ever, and Pythons beside it have it."""

    SCRIPT = """
import os, subprocess, sys
for name in os.environ["LD_PRELOAD"].split(":"):
    if "scalene" in name:
        print(os.path.exists(name), "libscalene_shim" in open("/proc/self/maps").read())
kept = bytearray(8 << 20)
"""

    def launch(self, *command, env=None):
        answer = self.run_words(*self.options("--memory", "--profile-all", "--"), *command, env=env)
        self.assertEqual((answer.returncode, answer.stderr), (0, b""))
        return answer.stdout, self.profile()

    def test_the_name(self):
        """It is no file for a C library other than glibc, and one for glibc."""
        said, profile = self.launch(*self.python("-c", self.SCRIPT))
        self.assertEqual(said, b"False True\n")
        self.assertGreaterEqual(profile["totals"]["allocated_mb"], 7)

    def test_other_c_library(self):
        program = os.path.join(self.folder, "stranger")
        harness.build_c(self, program, "stranger.c", by="musl-gcc")
        said, profile = self.launch("sh", "-c", '%s && "$@"' % program, "sh",
                                    *self.python("-c", self.SCRIPT))
        self.assertEqual(said, b"as ever\nFalse True\n")
        self.assertGreaterEqual(profile["totals"]["allocated_mb"], 7)

    def sanitizer(self):
        """AddressSanitizer's runtime as a library, which must come before all others."""
        compiler = shutil.which("gcc")
        words = [compiler or "false", "-print-file-name=libasan.so"]
        path = self.run_words(*words).stdout.decode().strip()
        if harness.CURRENT.root or not os.path.isabs(path):
            self.skipTest("needs libasan where the interpreter is")
        return path

    def test_sanitized_python(self):
        env = {"LD_PRELOAD": self.sanitizer(), "ASAN_OPTIONS": "detect_leaks=0"}
        python = self.python("-c", "print('as ever')" + BURN)
        if self.run_words(*python, env=env).returncode:
            self.skipTest("this interpreter does not run with libasan")
        for more, memory in (("", False), (":verify_asan_link_order=0", True)):
            told = dict(env, ASAN_OPTIONS=env["ASAN_OPTIONS"] + more)
            said, profile = self.launch(*python, env=told)
            self.assertEqual((said, profile["memory"]), (b"as ever\n", memory))
            notes = [note for note in profile["notes"] if "AddressSanitizer" in note]
            self.assertEqual(len(notes), 0 if memory else 1, profile["notes"])
            found = self.python_of(profile, "as ever")
            # what it used before it became the program is the tracer's child's
        self.assertGreaterEqual(found["cpu_s"], 0.9 * BURN_S)

    def test_sanitized_program(self):
        """No Python at all, so that there is nothing to show of it."""
        self.sanitizer()
        program = os.path.join(self.folder, "stranger")
        harness.build_c(self, program, "stranger.c", "-fsanitize=address", by="gcc")
        answer = self.run_words(*self.options("--memory", "--"), program,
                                env={"ASAN_OPTIONS": "detect_leaks=0"})
        self.assertEqual((answer.returncode, answer.stdout), (harness.OWN_FAILURE, b"as ever\n"))
        self.assertNotIn(b"ASan", answer.stderr)


if __name__ == "__main__":
    harness.main()
