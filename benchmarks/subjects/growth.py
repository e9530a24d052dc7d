"""How the time of a layer grows with its batch and its width, on all sides."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.rows import Row, emit
from benchmarks.sides.team import Team
from benchmarks.subjects.peers import row, who
from benchmarks.timing import KINDS, QUICK
from benchmarks.works import catalogue

SECONDS = 1.0


def rows() -> Iterator[Row]:
    """The fastest of the others over ours, for each size."""
    with Team() as team:
        yield who(team)
        for growth, works in catalogue.growths(quick=QUICK, kinds=KINDS):
            for work in works:
                made = row(team.compare(work, seconds=SECONDS))
                yield Row(**{**vars(made), "data": {**made.data, "growth": growth}})


if __name__ == "__main__":
    emit(rows())
