"""The default schedule beside the best candidate."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.rows import Row
from benchmarks.subjects import schedules
from benchmarks.works.work import Work


@pytest.mark.slow
def test_a_stage_is_tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "TRIALS", 2)
    row = schedules.row(Work("dense", (9, 40, 33), constant=True), tmp_path / "tuned.json")
    assert row.what == "dense 9x40x33, constant weights: default / best"
    assert row.value >= 1.0
    assert row.data["us"] > 0


def test_the_summary_holds_the_median_and_the_worst_to_their_bounds() -> None:
    made = [Row(f"stage {value}", value, "x") for value in (1.0, 1.04, 1.3)]
    median, worst = schedules.summary(made, 7)
    assert (median.value, median.holds) == (1.04, True)
    assert (worst.value, worst.holds, worst.detail) == (1.3, False, "stage 1.3")
    assert list(schedules.summary([], 7)) == []
