"""The graph whose regions are timed has its size, and regions."""

from __future__ import annotations

from benchmarks.subjects.regions import found, large_function


def test_the_large_function() -> None:
    assert 300 <= len(large_function(300).graph.get_operations()) < 340


def test_the_row() -> None:
    row = found(nodes=300)
    assert row.what == "regions of 300 nodes"
    assert " regions; " in row.detail
    assert not row.detail.startswith("0 ")
