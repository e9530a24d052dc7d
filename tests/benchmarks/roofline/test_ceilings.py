"""Which limit binds a kernel, and how near it is."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.roofline.ceilings import Ceilings, Level, place

CEILINGS = Ceilings(
    100e9, (Level("L1", 1e3, 50e9), Level("L2", 1e6, 20e9), Level("memory", float("inf"), 5e9))
)


@pytest.mark.parametrize(
    ("flops", "moved", "seconds", "limit"),
    [
        (1e6, 900, 1e-5, "FMA"),
        (10, 900, 1.8e-8, "L1"),
        (10, 1e5, 5e-6, "L2"),
        (1e6, 1e7, 2e-3, "memory"),
    ],
)
def test_the_longer_of_two_times_binds(
    flops: float, moved: float, seconds: float, limit: str
) -> None:
    least, binds = CEILINGS.least_seconds(flops, moved)
    assert least == pytest.approx(seconds)
    assert binds == limit


def test_the_ceilings_are_those_of_all_threads() -> None:
    def row(**data: Any) -> dict[str, Any]:
        return {"data": data}

    rows = [
        row(flops=1e9, all_threads=False),
        row(flops=2e9, all_threads=True),
        row(level="memory", capacity=None, bandwidth=3e9, all_threads=True),
        row(level="L1", capacity=1000, bandwidth=9e9, all_threads=True),
        row(level="L1", capacity=1000, bandwidth=8e9, all_threads=False),
        row(probe="copy", footprint=5, all_threads=True),
    ]
    ceilings = Ceilings.of(rows)
    assert ceilings == Ceilings(2e9, (Level("L1", 1000, 9e9), Level("memory", float("inf"), 3e9)))
    assert Ceilings.of(rows[:2]) is None


def test_each_kernel_is_placed_once_by_its_fastest_time() -> None:
    def row(title: str, us: float, column: str = "bare kernel") -> dict[str, Any]:
        told = {"us": {"median": us}, "note": "gemm"}
        data = {"title": title, "flops": 1e6, "bytes": 900, "columns": {column: told}}
        return {"data": data}

    rows = [row("a", 40), row("a", 20), row("b", 10, "another"), {"data": {}}]
    (placed,) = place(CEILINGS, rows, "bare kernel")
    assert (placed.title, placed.kernel, placed.limit) == ("a", "gemm", "FMA")
    assert placed.seconds == pytest.approx(2e-5)
    assert placed.share == pytest.approx(0.5)
