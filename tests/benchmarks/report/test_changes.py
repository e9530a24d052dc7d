"""What counts as a change: quartiles that do not overlap, and more than a few per cent."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from benchmarks.report.changes import Figure, is_changed, lines
from tests.benchmarks.report.results import results


def figure(median: float, low: float | None = None, high: float | None = None) -> Figure:
    return Figure(median, low, high, "x", None)


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        (figure(1.0, 0.9, 1.1), figure(1.3, 1.2, 1.4), True),
        (figure(1.0, 0.9, 1.1), figure(1.3, 1.05, 1.4), False),  # within each other's noise
        (figure(1.0, 0.999, 1.001), figure(1.02, 1.019, 1.021), False),  # too little
        (figure(1.0, 0.999, 1.001), figure(0.96, 0.959, 0.961), True),
        (figure(1.0), figure(1.09), False),
        (figure(1.0), figure(1.11), True),
        (figure(1.0, 0.9, 1.1), figure(1.09), False),
    ],
)
def test_the_rule(old: Figure, new: Figure, changed: bool) -> None:
    assert is_changed(old, new) is changed


def ratio(kept: dict[str, Any], place: int, factor: float) -> None:
    """Multiplies the ratio of TensorFlow of a work."""
    told = kept["subjects"]["peers"][place]["data"]["columns"]["TensorFlow"]["ratio"]
    for name in told:
        told[name] *= factor


def test_ratios_of_a_work_are_compared_by_peer() -> None:
    old = results()
    new = copy.deepcopy(old)
    ratio(new, 1, 3.0)
    ratio(new, 2, 0.2)
    new["subjects"]["eager"][1]["value"] = 24
    told = list(lines(old, new))
    assert told[0].endswith("the old run was a quick one: few samples, wide spreads")
    assert told[2] == "worse:"
    assert told[3].endswith("12 > 24 MB  eager: memory | growth")  # the largest change first
    assert "dense 32x64x64, a node of 64" in told[4] and "TensorFlow / ours" in told[4]
    assert told[5] == "better:"
    assert told[-1].endswith("3 of 16 figures changed beyond noise")
    assert max(map(len, told)) <= 80


def test_what_one_run_has_alone_and_another_machine_are_told() -> None:
    old, new = results(), results()
    new["machine"] |= {"vectors": "AVX-512", "cpu": "Another"}
    del new["subjects"]["roofline"]
    told = list(lines(old, new))
    assert told[0] == "these are machines of two kinds, avx2 and avx512"
    assert told[-1] == "2 figures are in the old run alone"
    new["machine"]["vectors"] = "AVX2"
    assert next(lines(old, new)) == "these are two machines: A Processor and Another"
