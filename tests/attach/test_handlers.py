"""Copies that signal handlers make: they are told, and do no harm, whatever they interrupt."""

import os
import tempfile

import harness
import test_shim
from harness import PROGRAMS

COPY_WINDOW = 64 * 1024
SIZE = 64 * 1024  # of one of handlers.c's


class Handlers(test_shim.ShimTest):
    def run_case(self, case):
        """The events of its copies."""
        if harness.CURRENT.root:
            self.skipTest("what is compiled here may not run in %s" % harness.CURRENT.root)
        with tempfile.TemporaryDirectory() as folder:
            library = os.path.join(folder, "handlers.so")
            harness.build_c(self, library, "handlers.c", "-shared", "-fPIC")
            said, events = self.dump(
                *harness.CURRENT.command(os.path.join(PROGRAMS, "handlers.py"), case, library),
                copy_window=COPY_WINDOW)
        copies, wrong = map(int, said.split())
        self.assertEqual(wrong, 0)
        copied = [event for event in events if event.change == "copied"]
        told = sum(event.weight for event in copied) / (copies * SIZE)
        self.assertLess(told, 1.05)
        self.assertGreater(told, 0.7, "all but what is taken for an interrupted allocator's own")
        return copied

    def test_at_any_moment(self):
        """Also in the middle of a call or a return, when the innermost frame is none yet. Nearly
        all have their stacks all the same."""
        copied = self.run_case("interrupted")
        placed = [event for event in copied if event.frames and
                  all(name for _, name, _ in event.frames) and
                  os.path.basename(event.frames[-1][2]) == "handlers.py"]
        self.assertGreater(len(placed) / len(copied), 0.9)

    def test_on_small_stack(self):
        """One that is the handler's own: there is no room for a walk."""
        copied = self.run_case("small_stack")
        placed = [event for event in copied if event.frames]
        self.assertLess(len(placed) / len(copied), 0.1)


if __name__ == "__main__":
    harness.main()
