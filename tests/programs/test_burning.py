"""For pytest: two tests that burn CPU time."""

from launched import burn


def test_one():
    burn(0.3)


def test_other():
    burn(0.3)
