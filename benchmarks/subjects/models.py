"""Models that others wrote, accelerated: beside TensorFlow, ONNX Runtime and OpenVINO.

`composite.accelerate` may take what XLA makes of a model, too; a row says what it took, and the
times of all that it had to choose from. Each model and batch has a process of its own on our side.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.rows import Row, emit
from benchmarks.sides.team import MODEL_MEMBERS, OURS, Comparison, Team
from benchmarks.subjects import peers
from benchmarks.timing import KINDS, QUICK
from benchmarks.works.model_work import PLAIN, REGIONS, XLA, ModelWork
from benchmarks.works.models import MODELS

MAKER = MODEL_MEMBERS[0].module
STOCK = (PLAIN, XLA)
BATCHES = (1,) if QUICK else (1, 8, 32)
SECONDS = 6.0
PATIENCE = 1800  # seconds: all kernels of a model are compiled, and all others wait
SLOWEST = 0.97  # of the best of TensorFlow's ways

TO_STOCK = f"best of TensorFlow / {OURS}"
TO_ALL = f"best of all / {OURS}"
TO_REGIONS = f"best of TensorFlow / {REGIONS}"


def rows() -> Iterator[Row]:
    """Who takes part; each model at each batch; the geometric means."""
    found: list[Row] = []
    with Team(MODEL_MEMBERS, patience=PATIENCE) as team:
        yield peers.who(team)
        for name in list(MODELS)[: 2 if QUICK and not KINDS else None]:
            for batch in BATCHES if not KINDS or name in KINDS else ():
                if found:  # a batch that it has seen would be a symbol of the next one's kernels
                    team.renew(MAKER)
                of_model = list(rows_of(_compared(team, name, batch)))
                found += of_model
                yield from of_model
    yield from means(found)


def _compared(team: Team, name: str, batch: int) -> Comparison[ModelWork]:
    with tempfile.TemporaryDirectory(prefix="composite-bench-") as folder:
        return team.compare(ModelWork(name, batch, folder), seconds=SECONDS)


def rows_of(comparison: Comparison[ModelWork]) -> Iterator[Row]:
    """The best of TensorFlow over ours, the best of all over ours, TensorFlow over regions."""
    work, timings = comparison.work, comparison.timings
    if OURS not in timings.seconds:
        yield Row(work.title, 0, "", detail=comparison.refused[MAKER])
        return
    others = [column for column in timings.seconds if column not in (OURS, REGIONS)]
    best = timings.fastest([column for column in others if column in STOCK])
    yield Row.of(
        f"{work.title}: {TO_STOCK}",
        timings.ratio(best, OURS),
        "x",
        at_least=SLOWEST,
        detail=_detail(comparison),
        data=_data(comparison),
    )
    fastest = timings.fastest(others)
    yield Row.of(f"{work.title}: {TO_ALL}", timings.ratio(fastest, OURS), "x", detail=fastest)
    if REGIONS in timings.seconds:
        yield Row.of(f"{work.title}: {TO_REGIONS}", timings.ratio(best, REGIONS), "x")


def means(found: list[Row]) -> Iterator[Row]:
    """The geometric means of all figures of a kind."""
    for figure in (TO_STOCK, TO_ALL, TO_REGIONS):
        values = [row.value for row in found if row.what.endswith(f": {figure}")]
        if values:
            mean = float(np.exp(np.mean(np.log(values))))
            detail = f"of {len(values)} figures, least {min(values):.2f}"
            data = {"mean_of": figure}
            yield Row(f"geometric mean: {figure}", mean, "x", detail=detail, data=data)


def _detail(comparison: Comparison[ModelWork]) -> str:
    timings = comparison.timings
    times = ", ".join(f"{way} {timings.microseconds(way).median:.0f}" for way in timings.seconds)
    parts = [f"us: {times}", comparison.columns[OURS]["note"], peers.refusals(comparison)]
    return "; ".join(filter(None, parts))


def _data(comparison: Comparison[ModelWork]) -> dict[str, Any]:
    """A comparison as JSON, for the table of a page."""
    work, ways = comparison.work, peers.columns_of(comparison)
    return {"model": work.model, "batch": work.batch, "ways": ways, "refused": comparison.refused}


if __name__ == "__main__":
    emit(rows())
