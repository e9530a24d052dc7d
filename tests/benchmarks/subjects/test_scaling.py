"""Works on more and more processors: which, in which order, and what they gain."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.sides.team import Comparison
from benchmarks.subjects import scaling
from benchmarks.timing import Timings
from benchmarks.works.model_work import ModelWork
from benchmarks.works.work import Work


class FakeTeam:
    """Ours takes half as long on twice as many processors, TensorFlow as long as on one."""

    def __init__(self, *members: object, patience: float = 0) -> None:
        self._processors = len(os.sched_getaffinity(0))

    def __enter__(self) -> FakeTeam:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def compare(self, work: Work | ModelWork, *, seconds: float) -> Comparison:
        assert seconds > 0
        took = np.full(3, 1e-3)
        told = {"setting": "", "note": "", "difference": 0.0}
        timings = Timings({"ours": took / self._processors, "TensorFlow": 2 * took})
        return Comparison(work, timings, {"ours": told, "TensorFlow": told}, {})


def test_rows_of_each_number_of_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "Team", FakeTeam)
    mask = os.sched_getaffinity(0)
    rows = list(scaling.rows())
    assert os.sched_getaffinity(0) == mask
    numbers = scaling.counts(len(mask))
    titles = [*(work.title for work in scaling.WORKS), "encoder, batch 8"]
    of_numbers, gains = rows[: len(numbers) * len(titles)], rows[len(numbers) * len(titles) :]
    assert [row.what for row in of_numbers] == [
        f"{title}, {number} of {len(mask)} processors" for number in numbers for title in titles
    ]
    assert [row.value for row in of_numbers] == pytest.approx(
        [2 * number for number in numbers for _ in titles]
    )
    if len(numbers) > 1:
        assert [row.what for row in gains] == [f"{t}: all processors over one" for t in titles]
        assert [row.value for row in gains] == pytest.approx([len(mask)] * len(titles))
        assert {row.detail for row in gains} == {"TensorFlow 1.00"}


def test_the_numbers_of_processors() -> None:
    assert [scaling.counts(n) for n in (1, 2, 3, 8)] == [[1], [1, 2], [1, 2, 3], [1, 2, 4, 8]]


def test_each_core_is_used_before_a_second_thread_of_one(tmp_path: Path) -> None:
    for processor, core in enumerate(["0-1", "0-1", "2-3", "2-3"]):
        folder = tmp_path / f"cpu{processor}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(core + "\n", encoding="utf-8")
    assert scaling.by_core({0, 1, 2, 3, 7}, tmp_path) == [0, 2, 7, 1, 3]
