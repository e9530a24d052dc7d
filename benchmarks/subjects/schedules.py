"""How far the default schedule of a kernel is from the best one that measuring finds.

The stages are of shapes that are drawn from a seed. Of each, the candidates of `composite.tune` are
measured: half of them change one choice of the default, the others combine the best of these.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rows import Row, emit
from benchmarks.sides.ours import OPS
from benchmarks.timing import KINDS, QUICK, SEED
from benchmarks.works import drawn
from benchmarks.works.work import Work

TRIALS = 4 if QUICK else 32
MEDIAN, WORST = 1.05, 1.20
"""How many times the best candidate's time the default may take, of half of the stages and all."""


def rows(seed: int) -> Iterator[Row]:
    """The default's time over the best one's, for each stage; their median and the worst."""
    made: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="composite-schedules-") as folder:
        for _, works in drawn.works(seed, quick=QUICK, kinds=KINDS):
            for number, work in enumerate(works):
                database = Path(folder) / f"{work.kind}{number}.json".replace(" ", "-")
                made.append(row(work, database))
                yield made[-1]
    yield from summary(made, seed)


def row(work: Work, database: Path) -> Row:
    """One stage: weights that are constant are variables here, as in a model."""
    import tensorflow as tf

    import composite

    op, attrs = OPS[work.kind]
    program = work.program()
    weights = [program.weights[i] for i in program.steps[0]]
    known: Any = tf.Variable if work.constant else tf.constant
    found = composite.tune(
        op, program.x, *map(known, weights), trials=TRIALS, database=database, **attrs
    )
    changed = ", ".join(f"{name}={value}" for name, value in found.choices.items())
    return Row(
        f"{work.title}{', constant weights' if work.constant else ''}: default / best",
        found.default_us / found.us,
        "x",
        detail=f"{found.default_us:.1f} us; {changed or 'the default is the best'}",
        data={"kind": work.kind, "choices": found.choices, "us": found.us},
    )


def summary(made: Sequence[Row], seed: int) -> Iterator[Row]:
    """The median and the worst of all stages."""
    if not made:
        return
    worst = max(made, key=lambda one: one.value)
    detail = f"of {len(made)} stages, {TRIALS} candidates each; seed {seed}"
    median = float(np.median([one.value for one in made]))
    yield Row("default / best, the median", median, "x", at_most=MEDIAN, detail=detail)
    yield Row("default / best, the worst", worst.value, "x", at_most=WORST, detail=worst.what)


if __name__ == "__main__":
    emit(rows(SEED))
