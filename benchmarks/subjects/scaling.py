"""How each side uses processors: layers and an encoder on one processor, on two, up to all.

The affinity mask of the sides' processes is what a container's cpuset sets. Every side has as many
threads as its mask has processors.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.rows import Row, emit
from benchmarks.sides.team import MODEL_MEMBERS, OURS, Team
from benchmarks.subjects import models, peers
from benchmarks.timing import KINDS, QUICK
from benchmarks.works.model_work import ModelWork
from benchmarks.works.work import Work

SECONDS = 1.0
WORKS = (
    Work("dense", (1, 1024, 1024)),
    Work("dense", (128, 512, 512)),
    Work("attention", (8, 128, 64)),
    Work("LSTM", (8, 50, 256, 256)),
    Work("conv 3x3", (32, 14, 14, 32, 64)),
    Work("softmax", (2000, 1024)),
    Work("layer norm", (2000, 1024)),
)
MODEL, BATCH = "encoder", 8

_TOPOLOGY = Path("/sys/devices/system/cpu")


def rows() -> Iterator[Row]:
    """The fastest of the others over ours, by number of processors; then the speedup of ours."""
    found: dict[str, list[Row]] = {}
    mask = os.sched_getaffinity(0)
    processors = by_core(mask)
    try:
        for count in counts(len(processors)):
            os.sched_setaffinity(0, processors[:count])
            for row in _measured():
                found.setdefault(row.what, []).append(row)
                of = f"{count} of {len(processors)} processors"
                yield replace(row, what=f"{row.what}, {of}", data={**row.data, "processors": count})
    finally:
        os.sched_setaffinity(0, mask)
    for title, of_work in found.items():
        yield from gain(title, of_work)


def counts(processors: int) -> list[int]:
    """The powers of two below a number of processors, and the number."""
    return [*(2**i for i in range((processors - 1).bit_length())), processors]


def by_core(processors: Collection[int], topology: Path = _TOPOLOGY) -> list[int]:
    """Processors in the order in which they are used: one of each core before a second one."""
    seen: dict[str, int] = {}
    ranked = []
    for processor in sorted(processors):
        siblings = topology / f"cpu{processor}" / "topology" / "thread_siblings_list"
        core = siblings.read_text() if siblings.exists() else str(processor)
        ranked.append((seen.setdefault(core, 0), processor))
        seen[core] += 1
    return [processor for _, processor in sorted(ranked)]


def gain(title: str, of_work: Sequence[Row]) -> Iterator[Row]:
    """How many times as fast a work runs on all processors as on one."""
    times = [_times(row) for row in of_work]
    if len(times) < 2 or OURS not in times[0] or OURS not in times[-1]:
        return
    both = [column for column in times[0] if column in times[-1]]
    gains = {column: times[0][column] / times[-1][column] for column in both}
    others = ", ".join(f"{column} {gains[column]:.2f}" for column in both if column != OURS)
    yield Row(f"{title}: all processors over one", gains[OURS], "x", detail=others)


def _measured() -> Iterator[Row]:
    """A row for each work, on the processors of this process. Its title is that of the work."""
    works = [work for work in WORKS if not KINDS or work.kind in KINDS]
    with Team() as team:
        for work in works[:1] if QUICK and not KINDS else works:
            made = peers.row(team.compare(work.stacked(), seconds=SECONDS))
            yield replace(made, what=work.title)
    if MODEL in KINDS or not (KINDS or QUICK):
        yield _model()


def _model() -> Row:
    with (
        Team(MODEL_MEMBERS, patience=models.PATIENCE) as team,
        tempfile.TemporaryDirectory(prefix="composite-bench-") as folder,
    ):
        model = ModelWork(MODEL, BATCH, folder)
        first, *others = models.rows_of(team.compare(model, seconds=models.SECONDS))
    # The first row has the data of all ways, the second one compares ours with all others.
    return replace(others[0] if others else first, what=model.title, data=first.data)


def _times(row: Row) -> dict[str, float]:
    """Microseconds by column."""
    columns: dict[str, Any] = row.data.get("columns") or row.data.get("ways") or {}
    return {column: told["us"]["median"] for column, told in columns.items()}


if __name__ == "__main__":
    emit(rows())
