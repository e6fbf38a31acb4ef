"""`dump` of a fresh target takes less than half of the time that py-spy takes for the same."""

import os
import sys
import unittest

import harness

sys.path.insert(0, os.path.join(os.path.dirname(harness.PROGRAMS), "bench"))

import compare_dump


class Compared(harness.AttachTest):
    @unittest.skipIf(harness.RELEASE.endswith("t"), "py-spy knows no free-threaded CPython")
    def test_less_than_half_of_py_spys_time(self):
        try:
            py_spy = compare_dump.find_py_spy()
        except compare_dump.Unavailable as reason:
            self.skipTest(str(reason))
        ours, theirs = compare_dump.compare(harness.CURRENT, py_spy)
        print("%.1f ms, py-spy %.1f ms, ratio %.2f" % (ours * 1e3, theirs * 1e3, ours / theirs))
        self.assertLess(ours / theirs, 0.5)


if __name__ == "__main__":
    harness.main()
