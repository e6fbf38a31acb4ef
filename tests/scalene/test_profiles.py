#!/usr/bin/env python3
"""The golden profiles to Scalene itself. 77 says: it is not here."""

import pathlib
import sys

import scalene_view

PROFILES = pathlib.Path(__file__).parent.parent / "golden" / "profile"


def main():
    if not scalene_view.is_here():
        return scalene_view.SKIPPED
    paths = sorted(PROFILES.glob("*.json"))
    assert paths
    for path in paths:
        scalene_view.check(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
