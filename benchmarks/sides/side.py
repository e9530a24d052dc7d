"""A side: one library that runs works, and the ways it has of running each.

This is all that a peer has to say about itself; `worker` runs it in a process of its own.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks.works.model_work import ModelProgram
from benchmarks.works.work import Program

CHUNK_SECONDS = 2e-3
"""How long a chunk is timed: long against the clock, short against a spell of noise."""

_PROBES = 5


@dataclass(frozen=True)
class Way:
    """A program, built: `run` is what is timed, `result` runs it once and hands out the output.

    That is an array, or a list of all outputs of a model. `note` says what is worth knowing of it.
    """

    run: Callable[[], Any]
    result: Callable[[], Any]
    note: str = ""


Settings = Mapping[str, Callable[[], Way]]
"""Ways to build one column, by setting: the fastest is what counts."""


class Side(Protocol):
    """A library under measurement."""

    def versions(self) -> dict[str, str]:
        """Distributions and their versions."""

    def columns(self, program: Program) -> dict[str, Settings]:
        """What this side shows of a program; none where it has no such layer."""


class ModelSide(Protocol):
    """A library that runs models of Keras."""

    def versions(self) -> dict[str, str]:
        """Distributions and their versions."""

    def columns(self, program: ModelProgram) -> dict[str, Settings]:
        """What this side shows of a model."""


@dataclass(frozen=True)
class Chosen:
    """The best setting of a column: how it is timed, and how far its result is off."""

    way: Way
    setting: str
    repeats: int
    difference: float


def choose(program: Program | ModelProgram, settings: Settings) -> Chosen:
    """Build every setting, compare its result with what is expected, keep the fastest.

    ValueError for a wrong result.
    """
    best: tuple[float, Chosen] | None = None
    for setting, build in settings.items():
        way = build()
        difference = program.difference(way.result())
        for _ in range(3):
            way.run()
        repeats = max(1, int(CHUNK_SECONDS / chunk(way.run, 1)))
        seconds = statistics.median(chunk(way.run, repeats) for _ in range(_PROBES))
        if best is None or seconds < best[0]:
            best = (seconds, Chosen(way, setting, max(1, int(CHUNK_SECONDS / seconds)), difference))
    if best is None:
        raise ValueError("a column without settings")
    return best[1]


def chunk(run: Callable[[], Any], repeats: int) -> float:
    """Seconds of one run, the mean of so many."""
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats
