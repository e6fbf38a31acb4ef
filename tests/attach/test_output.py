"""What `dump` writes: text for people, plain in a pipe and coloured on a terminal, and the JSON
document of the contract."""

import json
import os
import re
import unicodedata

import harness
from harness import Target
from screen import Screen

ESCAPE = re.compile("\x1b\\[[0-9;]*m")


def run_on_terminal(*arguments, env=None):
    """Its output when standard output is a terminal of 300 columns, whichever ours is."""
    env = {"TERM": "xterm", **(env or {})}
    with Screen(columns=300) as screen:
        child = harness.start_attach(*arguments, env=env, stdout=screen.fd)
        output = screen.read(child)
    error = child.stderr.read()
    child.stderr.close()
    if child.wait(harness.PATIENCE_S) != 0:
        raise AssertionError(error)
    return output.decode().replace("\r\n", "\n")


def width(text):
    """Columns on a terminal."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


class Text(harness.AttachTest):
    def text_of(self, target, *options, env=None):
        answer = harness.run_attach("dump", "--pid", target.pid, *options, env=env)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertEqual(answer.stderr, b"")
        return answer.stdout.decode()

    def test_plain_in_a_pipe(self):
        with Target("stacks.py", "nested") as target:
            text = self.text_of(target)
        self.assertNotIn("\x1b", text)
        self.assertTrue(text.endswith("\n"))
        self.assertIn(str(target.pid), text)
        self.assertIn(harness.CURRENT.release.rstrip("t") + ".", text)

    def test_each_frame_in_order_with_file_and_line(self):
        with Target("stacks.py", "nested") as target:
            text = self.text_of(target)
            (truth,) = target.facts["threads"]
        where = 0
        for name, file, line, _ in truth["frames"]:
            found = re.compile(
                r"^ +%s +%s:%d\b" % (re.escape(name), re.escape(file), line), re.M
            ).search(text, where)
            self.assertTrue(found, "%s at %s:%d in\n%s" % (name, file, line, text))
            where = found.end()

    def test_threads_with_id_name_and_state(self):
        with Target("threads.py", "spinning") as target:
            target.wait_in(target.pid, "read")
            target.wait_in_lock(target.tids()[target.facts["tids"]["sleeper"]])
            text = self.text_of(target)
            for _ in range(100):  # it may wait still for the core on which to take the GIL
                if harness.CURRENT.free_threaded or re.search(r"spinner.*holds the GIL", text):
                    break
                text = self.text_of(target)
            heads = [line for line in text.splitlines() if line.startswith("Thread ")]
            self.assertEqual(len(heads), 3)
            tids = target.tids()
            for name, tid in target.facts["tids"].items():
                (head,) = [line for line in heads if re.search(r"\b%d\b" % tids[tid], line)]
                self.assertIn({"main": "MainThread"}.get(name, name), head)
                gil = name == "spinner" and not harness.CURRENT.free_threaded
                self.assertEqual(bool(re.search("GIL", head)), gil, head)
            (sleeper,) = [line for line in heads if "sleeper" in line]
            self.assertIn("lock", sleeper)

    def check_aligned(self, text, marks):
        """Within a thread, what stands right of the names begins in one column."""
        columns = {}
        thread = None
        for line in text.splitlines():
            if line.startswith("Thread "):
                thread = line
            for mark in marks:
                if line.startswith(" ") and mark in line:
                    columns.setdefault(thread, set()).add(width(line[: line.index(mark)]))
        self.assertTrue(columns)
        for thread, seen in columns.items():
            self.assertEqual(len(seen), 1, "%s\n%s" % (thread, text))

    def test_aligned(self):
        with Target("stacks.py", "callbacks") as target:
            folder = os.path.dirname(target.facts["threads"][0]["frames"][-1][1])
            self.check_aligned(self.text_of(target), [folder + "/"])

    def test_aligned_with_wide_names(self):
        with Target("stacks.py", "identifiers") as target:
            inner = os.path.dirname(target.facts["threads"][0]["frames"][-1][1])
            self.check_aligned(self.text_of(target), [inner + "/", "/tmp/Gr"])

    def test_control_characters_do_not_reach_the_terminal(self):
        """A name is the target's own text: it may not steer who reads it."""
        with Target("stacks.py", "named", json.dumps("a\x1b[31m\r\n\x07\x9bz")) as target:
            text = self.text_of(target)
        self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")
        self.assertEqual([line for line in text.splitlines() if line.startswith("\x07")], [])

    def test_coloured_on_a_terminal(self):
        with Target("stacks.py", "nested") as target:
            target.wait_in(target.pid, "read")
            coloured = run_on_terminal("dump", "--pid", target.pid)
            plain = self.text_of(target)
        self.assertRegex(coloured, ESCAPE)
        self.assertEqual(ESCAPE.sub("", coloured), plain)

    def test_no_color_on_a_terminal(self):
        with Target("stacks.py", "nested") as target:
            target.wait_in(target.pid, "read")
            text = run_on_terminal("dump", "--pid", target.pid, env={"NO_COLOR": "1"})
            self.assertEqual(text, self.text_of(target))

    def test_empty_no_color_means_nothing(self):
        with Target("stacks.py", "nested") as target:
            text = run_on_terminal("dump", "--pid", target.pid, env={"NO_COLOR": ""})
        self.assertRegex(text, ESCAPE)

    def test_clicolor_force_in_a_pipe(self):
        with Target("stacks.py", "nested") as target:
            target.wait_in(target.pid, "read")
            text = self.text_of(target, env={"CLICOLOR_FORCE": "1"})
            self.assertRegex(text, ESCAPE)
            self.assertEqual(ESCAPE.sub("", text), self.text_of(target))

    def test_clicolor_force_0_is_off(self):
        with Target("stacks.py", "nested") as target:
            self.assertNotIn("\x1b", self.text_of(target, env={"CLICOLOR_FORCE": "0"}))

    def test_no_color_wins(self):
        with Target("stacks.py", "nested") as target:
            both = {"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}
            self.assertNotIn("\x1b", self.text_of(target, env=both))

    def test_native_frames_name_symbol_and_module(self):
        with Target("threads.py", "waiting", "sleep") as target:
            tid = target.tids()[target.facts["tids"]["waiter"]]
            target.wait_in(tid, "clock_nanosleep", "nanosleep", "select", "pselect6")
            text = self.text_of(target, "--native")
        (block,) = [part for part in text.split("\n\n") if part.startswith("Thread %d" % tid)]
        lines = block.splitlines()
        wait = [n for n, line in enumerate(lines) if re.match(" +(threads\\.)?wait_sleep ", line)]
        sleep = [n for n, line in enumerate(lines) if re.search("nanosleep|select", line)]
        self.assertLess(sleep[0], wait[0])


class Json(harness.AttachTest):
    def test_keys_and_types(self):
        """Those of the contract and no others; harness.check_shape looks at every document."""
        with Target("subinterpreters.py", "two") as target:
            dump = self.dump(target, "--native")
            self.check_shape(dump, target)
            kinds = {frame["kind"] for thread in dump["threads"] for frame in thread["frames"]}
            self.assertEqual(kinds, {"py", "native"})
            self.assertEqual(dump["pid"], target.pid)

    def test_one_document_and_a_newline(self):
        with Target("stacks.py", "plain") as target:
            answer = harness.run_attach("dump", "--json", "--pid", target.pid)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            text = answer.stdout.decode()
            document, end = json.JSONDecoder().raw_decode(text)
            self.assertEqual(text[end:], "\n")
            self.assertEqual(list(document), ["pid", "python", "threads"])

    def test_python_is_the_whole_version(self):
        with Target("stacks.py", "plain") as target:
            version = harness.CURRENT.ask("'%d.%d.%d' % sys.version_info[:3]")
            found = self.dump(target)["python"]
            self.assertRegex(found, r"\A%s(rc\d+|[ab]\d+)?t?\Z" % re.escape(version))
            self.assertEqual(found.endswith("t"), harness.CURRENT.free_threaded)

    def test_no_colour_ever(self):
        with Target("stacks.py", "plain") as target:
            forced = {"CLICOLOR_FORCE": "1"}
            answer = harness.run_attach("dump", "--json", "--pid", target.pid, env=forced)
            self.assertNotIn(b"\x1b", answer.stdout)
            text = run_on_terminal("dump", "--json", "--pid", target.pid)
            self.assertEqual(json.loads(text)["pid"], target.pid)

    def test_options_in_any_order_and_form(self):
        with Target("stacks.py", "plain") as target:
            pid = str(target.pid)
            for words in (
                ["dump", "-p", pid, "--json"],
                ["dump", "--pid=" + pid, "--json"],
                ["dump", "--json", "-p" + pid],
            ):
                answer = harness.run_attach(*words)
                self.assertEqual(answer.returncode, 0, (words, answer.stderr))
                self.assertEqual(json.loads(answer.stdout.decode())["pid"], target.pid)


if __name__ == "__main__":
    harness.main()
