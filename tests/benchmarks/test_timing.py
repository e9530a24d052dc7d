"""Paired timing and the rows that carry it."""

from __future__ import annotations

import json
import time
from dataclasses import asdict

import numpy as np
import pytest

from benchmarks.rows import Row, collect
from benchmarks.timing import LEAST_ROUNDS, Spread, Timings, interleave, rounds


def test_the_ratio_is_paired_by_round() -> None:
    slow_spell = np.array([1.0, 1.0, 9.0, 1.0, 1.0])
    timings = Timings({"ours": slow_spell, "theirs": 3 * slow_spell})
    assert timings.ratio("theirs", "ours") == Spread(3.0, 3.0, 3.0)
    assert timings.fastest(["theirs", "ours"]) == "ours"


def test_interleave_sees_who_is_slower_and_divides_by_the_calls() -> None:
    timings = interleave(
        {"short": lambda: time.sleep(0.001), "long": lambda: time.sleep(0.004)},
        seconds=0.2,
        calls=2,
    )
    assert timings.ratio("long", "short").median > 2
    assert 500 <= timings.microseconds("short").median < 2000


@pytest.mark.parametrize(
    ("at_least", "at_most", "holds"),
    [(None, None, None), (2.0, None, True), (2.5, None, False), (None, 1.9, False)],
)
def test_a_row_knows_whether_it_keeps_its_bound(
    at_least: float | None, at_most: float | None, holds: bool | None
) -> None:
    assert Row("what", 2.0, "x", at_least=at_least, at_most=at_most).holds is holds


def test_rows_travel_among_other_lines(capsys: pytest.CaptureFixture[str]) -> None:
    row = Row.of("what", Spread(2.0, 1.5, 2.5), "x", at_least=1.5, detail="why")
    lines = ["a warning\n", "row " + json.dumps(asdict(row)) + "\n"]
    assert list(collect(lines)) == [row]
    assert capsys.readouterr().err == "a warning\n"


def test_each_round_has_another_order() -> None:
    turns = rounds(["a", "b", "c"], 0)
    assert [next(turns) for _ in range(4)] == [
        ["a", "b", "c"],
        ["b", "c", "a"],
        ["c", "a", "b"],
        ["a", "b", "c"],
    ]
    assert 4 + len(list(turns)) == LEAST_ROUNDS
