"""Rows of models: the figures of each, what could not be measured, and the means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.rows import Row
from benchmarks.sides.team import MODEL_MEMBERS, Comparison
from benchmarks.subjects import models
from benchmarks.subjects.models import TO_ALL, TO_REGIONS, TO_STOCK, means, rows_of
from benchmarks.timing import Timings
from benchmarks.works.model_work import ModelWork

TIMES = {
    "ours": 10.0,
    "regions alone": 20.0,
    "TensorFlow": 40.0,
    "TensorFlow with XLA": 30.0,
    "ONNX Runtime": 5.0,
}


def comparison(times: dict[str, float], refused: dict[str, str]) -> Comparison[ModelWork]:
    seconds = {way: np.full(3, us * 1e-6) for way, us in times.items()}
    told = {"setting": "", "note": "runs with regions", "difference": 0.0}
    work = ModelWork("BERT", 8, "/nowhere")
    return Comparison(work, Timings(seconds), dict.fromkeys(seconds, told), refused)


def test_the_figures_of_a_model() -> None:
    stock, best, regions = rows_of(comparison(TIMES, {"model_open_vino": "it crashed"}))
    assert stock.what == f"BERT, batch 8: {TO_STOCK}"
    assert [row.value for row in (stock, best, regions)] == pytest.approx([3.0, 0.5, 1.5])
    assert (stock.at_least, stock.unit) == (0.97, "x")
    assert "us: ours 10, regions alone 20, TensorFlow 40" in stock.detail
    assert stock.detail.endswith("; runs with regions; without model_open_vino: it crashed")
    assert (best.what, best.detail) == (f"BERT, batch 8: {TO_ALL}", "ONNX Runtime")
    assert regions.what == f"BERT, batch 8: {TO_REGIONS}"
    ways = stock.data["ways"]
    assert ways["ONNX Runtime"]["ratio"]["median"] == pytest.approx(0.5)
    assert ways["ours"]["us"]["median"] == pytest.approx(10)


def test_regions_that_are_none_have_no_figure() -> None:
    times = {way: us for way, us in TIMES.items() if way != "regions alone"}
    assert len(list(rows_of(comparison(times, {})))) == 2


def test_a_model_that_cannot_be_made_has_a_line() -> None:
    missing = "ImportError: keras-hub is not installed"
    refused = {"model_keras": missing, "model_open_vino": "no such file"}
    (row,) = rows_of(comparison({}, refused))
    assert (row.what, row.value, row.detail) == ("BERT, batch 8", 0, missing)
    assert row.holds is None


def test_means_are_geometric() -> None:
    found = [
        Row(f"a, batch 1: {TO_STOCK}", 1.0, "x"),
        Row(f"b, batch 1: {TO_STOCK}", 4.0, "x"),
        Row(f"a, batch 1: {TO_ALL}", 0.5, "x"),
        Row("c, batch 1", 0, "", detail="it is not there"),
    ]
    stock, best = means(found)
    assert (stock.what, best.what) == (f"geometric mean: {TO_STOCK}", f"geometric mean: {TO_ALL}")
    assert [stock.value, best.value] == pytest.approx([2.0, 0.5])
    assert (stock.detail, best.detail) == ("of 2 figures, least 1.00", "of 1 figures, least 0.50")


class FakeTeam:
    """Runs nothing, and keeps what it was asked."""

    versions = {"fake": "1.0"}  # noqa: RUF012 - read only
    missing = {"model_open_vino": "it is not there"}  # noqa: RUF012

    def __init__(self, members: Any, *, patience: float) -> None:
        assert members == MODEL_MEMBERS and patience > 600
        self.asked: list[Any] = []

    def __enter__(self) -> FakeTeam:
        return self

    def __exit__(self, *_: object) -> None:
        renewals = [one for one in self.asked if one == "model_keras"]
        assert len(renewals) == len(self.asked) - len(renewals) - 1

    def renew(self, module: str) -> None:
        self.asked.append(module)

    def compare(self, work: ModelWork, *, seconds: float) -> Comparison[ModelWork]:
        assert seconds > 0
        self.asked.append((work.model, work.batch))
        made = comparison(TIMES, {})
        return Comparison(work, made.timings, made.columns, made.refused)


def test_each_batch_of_a_model_has_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "Team", FakeTeam)
    monkeypatch.setattr(models, "BATCHES", (1, 32))
    monkeypatch.setattr(models, "KINDS", ("tagger", "BERT"))
    first, *found = models.rows()
    assert first.detail == "fake 1.0; model_open_vino is missing: it is not there"
    titles = [row.what.partition(":")[0] for row in found[::3]]
    assert titles == [
        "tagger, batch 1", "tagger, batch 32", "BERT, batch 1", "BERT, batch 32", "geometric mean",
    ]  # fmt: skip
    assert [row.what for row in found[-3:]] == [
        f"geometric mean: {figure}" for figure in (TO_STOCK, TO_ALL, TO_REGIONS)
    ]
