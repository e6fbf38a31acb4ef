#!/usr/bin/env python3
"""The layer lint catches what it is there to catch."""

import pathlib
import unittest

from layers import check, read_table

TABLE = read_table(pathlib.Path(__file__).with_name("layers.txt").read_text())


def complaints(path, include):
    return check(TABLE, {path: f"#include {include}\n"})


class LayersTest(unittest.TestCase):
    def test_table_names_every_module_of_the_picture(self):
        self.assertEqual(list(TABLE)[:4], ["sampler/base", "sampler/target", "symbols", "pyabi"])
        self.assertEqual(len(TABLE), 16)

    def test_allowed(self):
        for path, include in (
            ("pyabi/frames.c", '"pyabi/code.h"'),
            ("pyabi/frames.c", '"sampler/base/remote.h"'),
            ("pyabi/frames.c", "<string.h>"),
            ("sampler/loop/ring.c", '"sampler/shim/ring_layout.h"'),
            ("sampler/app/main.c", '"pyabi/pyabi.h"'),
            ("sampler/target/trace.c", "<sys/ptrace.h>"),
            ("tests/offsets/probe.c", '"internal/pycore.h"'),
        ):
            with self.subTest(path=path, include=include):
                self.assertEqual(complaints(path, include), [])

    def test_forbidden_edges(self):
        for path, include in (
            ("pyabi/frames.c", '"symbols/maps.h"'),
            ("pyabi/frames.c", '"sampler/target/process.h"'),
            ("symbols/maps.c", '"pyabi/pyabi.h"'),
            ("sampler/base/remote.c", '"sampler/target/process.h"'),
            ("sampler/loop/tick.c", '"output/json/dump.h"'),
            ("sampler/loop/tick.c", '"sampler/shim/hooks.def"'),
            ("sampler/shim/hooks.c", '"sampler/base/error.h"'),
            ("output/cli/dump.c", '"output/json/dump.h"'),
            ("output/model/profile.c", '"pyabi/pyabi.h"'),
            ("pyabi/frames.c", "<sys/ptrace.h>"),
        ):
            with self.subTest(path=path, include=include):
                self.assertEqual(len(complaints(path, include)), 1)

    def test_spacing_does_not_hide_an_include(self):
        self.assertEqual(len(check(TABLE, {"pyabi/a.c": '  #  include   "symbols/maps.h"'})), 1)

    def test_a_path_that_is_not_from_the_top(self):
        self.assertEqual(len(complaints("pyabi/frames.c", '"code.h"')), 1)

    def test_a_file_outside_every_module(self):
        self.assertEqual(len(complaints("common/util.c", '"pyabi/pyabi.h"')), 1)


if __name__ == "__main__":
    unittest.main()
