"""Options of a profiling run take effect: in a run, not only where they are parsed."""

import os
import re
import socket
import subprocess
import sys

import harness
from own_account import cpu_of
from profiler import FolderTest
from screen import Screen

PROGRAM, HELPER = "choices.py", "choices_helper.py"


class Choices(FolderTest):
    def run_with(self, *options, output=None, prefix=()):
        path = harness.CURRENT.inner(os.path.join(harness.PROGRAMS, PROGRAM))
        output = ["-o", output or self.output] if output != "" else []
        answer = harness.run_attach("-q", "--max-overhead", "20", *options, *output, "--",
                                    *harness.CURRENT.command(), path, prefix=prefix)
        self.assertEqual(answer.returncode, 0, answer.stderr.decode())
        return answer

    def profile_with(self, *options):
        self.run_with(*options)
        return self.profile()

    def files_of(self, profile):
        return {os.path.basename(name): entry for name, entry in profile["files"].items()}

    def line_of(self, profile, word):
        (line,) = [line for line in self.files_of(profile)[PROGRAM]["lines"]
                   if line["line"].rstrip().endswith(word)]
        return line

    def test_virtual_time(self):
        usual, virtual = self.profile_with(), self.profile_with("--use-virtual-time")
        self.assertGreater(usual["totals"]["idle_s"], 0.2)
        self.assertGreater(self.line_of(usual, "time.sleep(0.3)")["idle_s"], 0.2)
        self.assertEqual(virtual["totals"]["idle_s"], 0)
        self.assertEqual(sum(virtual["totals"]["wait_s"].values()), 0)
        self.assertGreater(cpu_of(virtual["totals"]), 0)

    def test_own_memory(self):
        """Ours, and not what held the process that we were started from."""
        large = "import os, sys; held = b'x' * (200 << 20); os.execvp(sys.argv[1], sys.argv[1:])"
        self.run_with(prefix=(sys.executable, "-c", large))
        peak_mb = self.profile()["sampling"]["profiler_peak_rss_mb"]
        self.assertTrue(1 < peak_mb < 100, peak_mb)

    def test_nonblocking(self):
        profile = self.profile_with("--nonblocking")
        self.assertEqual((profile["sampling"]["pauses"], profile["sampling"]["paused_s"]), (0, 0))
        self.assertGreater(profile["sampling"]["samples"], 0)
        self.assertRegex("\n".join(profile["notes"]), "without pauses")

    def test_no_native(self):
        usual, without = self.profile_with(), self.profile_with("--no-native")
        self.assertGreater(self.line_of(usual, "# native")["cpu_native_s"], 0)
        for file in without["files"].values():
            for line in file["lines"]:
                self.assertFalse(line["cpu_native_s"] or line["native_top"], line["line"])
        self.assertRegex("\n".join(without["notes"]), "without native stacks")

    def test_exclude(self):
        """What is hidden counts for the line that called it."""
        profile = self.profile_with("--profile-exclude", "_helper")
        self.assertNotIn(HELPER, self.files_of(profile))
        self.assertGreater(cpu_of(self.line_of(profile, "choices_helper.loop()")), 0)

    def test_only(self):
        profile = self.profile_with("--profile-only", "nowhere,_helper")
        self.assertEqual(set(self.files_of(profile)), {HELPER})

    def test_libraries(self):
        usual = self.files_of(self.profile_with())
        self.assertNotIn("encoder.py", usual)
        for option in ("--profile-system-libraries", "--profile-all"):
            self.assertIn("encoder.py", self.files_of(self.profile_with(option)), option)

    def test_thresholds(self):
        """What is below both is left out, and counted."""
        profile = self.profile_with("--cpu-percent-threshold", "101", "--malloc-threshold",
                                    "1000000000", "--profile-all", "--cpu-only",
                                    "--cpu-percent-threshold", "40")
        shares = [file["percent_cpu_time"] for file in profile["files"].values()]
        self.assertTrue(shares and min(shares) >= 40, shares)
        self.assertRegex("\n".join(profile["notes"]), r"left out: \d+ of the files")

    def test_rate(self):
        """A look at each of its threads; one who asks for more than can be had is told."""
        slow = self.profile_with("--rate", "20")["sampling"]
        self.assertLess(slow["samples"], 60)
        self.assertLess(slow["rate_hz"], 60)  # by chance: of some 20 looks
        held_back = self.profile_with("--rate", "1000", "--max-overhead", "0.1")
        self.assertLess(held_back["sampling"]["rate_hz"], 900)
        self.assertRegex("\n".join(held_back["notes"]), "looks a second were made and not 1000")
        paused_s, elapsed_s = held_back["sampling"]["paused_s"], held_back["totals"]["elapsed_s"]
        self.assertLess(paused_s, 0.02 * elapsed_s)

    def test_usual_overhead(self):
        """Of a program that always works, by the profile's own count; also where the run is so
        short that one look more or less counts."""
        path = harness.CURRENT.inner(os.path.join(harness.PROGRAMS, "busy_loop.py"))
        for seconds, more in ((5, 0), (0.5, 0.001)):
            answer = harness.run_attach("-q", "-o", self.output, "--",
                                        *harness.CURRENT.command(), path, seconds)
            self.assertEqual(answer.returncode, 0, answer.stderr.decode())
            profile = self.profile()
            sampling, elapsed_s = profile["sampling"], profile["totals"]["elapsed_s"]
            print("overhead %-5s %.2f %% of %.1f s, longest %.0f us, %d pauses" % (
                harness.CURRENT.release, 100 * sampling["paused_s"] / elapsed_s, elapsed_s,
                sampling["longest_pause_us"], sampling["pauses"]), flush=True)
            if not more:
                self.assertGreater(sampling["pauses"], 10 * seconds)
            self.assertLessEqual(sampling["paused_s"], 0.01 * elapsed_s + more)

    def test_names_of_outputs(self):
        self.run_with(output=os.path.join(self.folder, "of-%p-on-%h.json"))
        (name,) = os.listdir(self.folder)
        self.assertRegex(name, r"\Aof-\d+-on-%s\.json\Z" % re.escape(socket.gethostname()))
        with open(os.path.join(self.folder, name)) as file:
            self.assertIn('"pid": %s' % name.split("-")[1], file.read())

    def test_rank(self):
        """Whom the output is named after is who is profiled, and also when it has ended."""
        def look(target):
            answer = harness.run_attach("-q", "-o", os.path.join(self.folder, "rank-%r.json"), "-d",
                                        "0.2", "-p", target.pid, env={"PMI_RANK": "5"})
            self.assertEqual((answer.returncode, answer.stderr), (0, b""))

        with harness.Target("threads.py", "spinning", env={"PMI_RANK": "3"}) as target:
            look(target)
        with harness.Target("threads.py", "spinning") as target:
            look(target)
        self.assertEqual(sorted(os.listdir(self.folder)), ["rank-3.json", "rank-5.json"])

    def test_heartbeat(self):
        """One line, drawn again in place, no wider than the terminal, and gone at the end."""
        path = harness.CURRENT.inner(os.path.join(harness.PROGRAMS, PROGRAM))
        command = [harness.SCALENE_ATTACH, "-o", self.output, "--", *harness.CURRENT.command(),
                   path]
        with Screen(columns=60) as screen:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=screen.fd)
            text = screen.read(child)
        self.assertEqual(child.returncode, 0, text)
        beats, _, words = text.decode().partition("\r\n")
        *lines, last = re.findall(r"\r([^\r]*)\x1b\[K", beats)
        self.assertGreater(len(lines), 1, text)
        self.assertEqual((last, beats.replace("\n", "")), ("", beats))
        for line in lines:
            self.assertLess(len(line), 60)
            self.assertRegex(line, r"\A0:0\d  \d+ samples  \d+ Hz  \d+ dropped  own CPU \d")
        self.assertRegex(lines[-1], r"RSS \d")
        self.assertIn("To view in terminal:", words)

    def test_table(self):
        """Beside a launched program's own output, on standard error."""
        answer = self.run_with("-f", "cli", output="")
        self.assertEqual(answer.stdout, b"")
        self.assertIn(PROGRAM, answer.stderr.decode())
        self.assertIn("time.sleep(0.3)", answer.stderr.decode())


if __name__ == "__main__":
    harness.main()
