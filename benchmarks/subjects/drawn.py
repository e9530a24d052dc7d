"""Ours beside the peers on shapes that are drawn from a seed, another one in each run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.rows import Row, emit
from benchmarks.sides.team import Team
from benchmarks.subjects.peers import row, who
from benchmarks.timing import KINDS, QUICK, SEED
from benchmarks.works import drawn

SECONDS = 1.0


def rows(seed: int) -> Iterator[Row]:
    """The fastest of the others over ours for each work, and the geometric mean of each kind."""
    with Team() as team:
        yield who(team)
        for kind, works in drawn.works(seed, quick=QUICK, kinds=KINDS):
            made = []
            for work in works:
                made.append(row(team.compare(work, seconds=SECONDS)))
                yield made[-1]
            yield mean(kind, made, seed)


def mean(kind: str, made: Sequence[Row], seed: int) -> Row:
    """The geometric mean of the ratios, with the least of them."""
    ratios = [one.value for one in made if one.value > 0]
    if not ratios:
        return Row(f"{kind}: no peer ran", 0, "", detail=f"seed {seed}")
    worst = min((one for one in made if one.value > 0), key=lambda one: one.value)
    return Row(
        f"{kind}: geometric mean of {len(ratios)} drawn shapes",
        float(np.exp(np.mean(np.log(ratios)))),
        "x",
        at_least=drawn.KINDS[kind].aim,
        detail=f"seed {seed}; least {worst.value:.2f} of {worst.what}",
    )


if __name__ == "__main__":
    emit(rows(SEED))
