"""The subjects that compare sides run the catalogue, and say who takes part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.sides.team import Comparison
from benchmarks.subjects import drawn, growth, peers
from benchmarks.timing import Timings
from benchmarks.works import catalogue
from benchmarks.works import drawn as drawn_works
from benchmarks.works.work import Work


class FakeTeam:
    """Every side takes as long as the work has operations."""

    versions = {"fake": "1.0"}  # noqa: RUF012 - read only
    missing = {"torch_cpu": "it is not there"}  # noqa: RUF012

    def __enter__(self) -> FakeTeam:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def compare(self, work: Work, *, seconds: float) -> Comparison:
        assert seconds > 0
        took = np.full(3, work.layer.flops(work.shape) * 1e-9)
        told = {"setting": "", "note": "kernel: gemm", "difference": 0.0}
        timings = Timings({"ours": took, "TensorFlow": 2 * took})
        return Comparison(work, timings, {"ours": told, "TensorFlow": told}, self.missing)


@pytest.fixture(autouse=True)
def team(monkeypatch: pytest.MonkeyPatch) -> None:
    for subject in (peers, drawn, growth):
        monkeypatch.setattr(subject, "Team", FakeTeam)


def shown(rows: Any) -> tuple[Any, list[Any]]:
    first, *rest = rows
    assert first.detail == "fake 1.0; torch_cpu is missing: it is not there"
    assert first.data == {"versions": FakeTeam.versions, "missing": FakeTeam.missing}
    return first, rest


def test_every_work_has_a_row() -> None:
    _, rows = shown(peers.rows())
    works = [work for group in catalogue.groups() for work in group]
    assert [row.data["title"] for row in rows] == [work.title for work in works]
    assert all(row.value == pytest.approx(2) for row in rows)


def test_every_growth_has_its_rows() -> None:
    _, rows = shown(growth.rows())
    named = {what: len(works) for what, works in catalogue.growths()}
    found = [row.data["growth"] for row in rows]
    assert {what: found.count(what) for what in found} == named


def test_drawn_shapes_have_rows_and_each_kind_its_mean() -> None:
    _, rows = shown(drawn.rows(7))
    for kind, works in drawn_works.works(7):
        mine, rows = rows[: len(works) + 1], rows[len(works) + 1 :]
        assert [row.data["title"] for row in mine[:-1]] == [work.title for work in works]
        assert mine[-1].what == f"{kind}: geometric mean of {len(works)} drawn shapes"
        assert mine[-1].value == pytest.approx(2)
        assert "seed 7; least 2.00 of" in mine[-1].detail
        assert mine[-1].holds is (None if drawn_works.KINDS[kind].aim is None else True)
    assert rows == []
