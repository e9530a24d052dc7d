"""Timing several ways of doing one thing against each other on a noisy machine.

The ways take turns, round by round, so that a slow spell of the machine hits all of them; ratios
are taken within a round and summed up by their median and quartiles. Not for a profile of one way.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

QUICK_ENVIRONMENT = "COMPOSITE_BENCH_QUICK"
QUICK = bool(os.environ.get(QUICK_ENVIRONMENT))
"""Whether this run is to show that all works, with fewer rounds and wider spreads."""

KINDS_ENVIRONMENT = "COMPOSITE_BENCH_KINDS"
KINDS = tuple(filter(None, os.environ.get(KINDS_ENVIRONMENT, "").split(",")))
"""The kinds of layers, and the ops of the gallery, that are timed; all of them if there is none."""

SEED_ENVIRONMENT = "COMPOSITE_BENCH_SEED"
SEED = int(os.environ.get(SEED_ENVIRONMENT) or time.time_ns() % 1_000_000)
"""Of what is drawn; another one in each process without one in the environment."""

_CHUNK_SECONDS = 2e-3  # long against the clock and the loop, short against a spell of noise
LEAST_ROUNDS = 5 if QUICK else 15


@dataclass(frozen=True)
class Spread:
    """A median with its quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: npt.NDArray[np.float64]) -> Spread:
        """Median and quartiles of a sample."""
        low, median, high = np.percentile(values, [25, 50, 75])
        return cls(float(median), float(low), float(high))


@dataclass(frozen=True)
class Timings:
    """Seconds of one call, for each way and round: the i-th values were taken side by side."""

    seconds: Mapping[str, npt.NDArray[np.float64]]

    def microseconds(self, way: str) -> Spread:
        """Time of one call of a way."""
        return Spread.of(self.seconds[way] * 1e6)

    def ratio(self, way: str, base: str) -> Spread:
        """How many times as long `way` takes as `base`, paired by round."""
        return Spread.of(self.seconds[way] / self.seconds[base])

    def fastest(self, ways: list[str]) -> str:
        """The way among these with the least median."""
        return min(ways, key=lambda way: float(np.median(self.seconds[way])))


def interleave(
    ways: Mapping[str, Callable[[], Any]], *, seconds: float = 3.0, calls: int = 1
) -> Timings:
    """Time all ways for about `seconds` altogether; one run of a way counts as `calls` calls."""
    repeats = {name: _repeats(run) for name, run in ways.items()}
    samples: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    for turn in rounds(names, seconds):
        for name in turn:
            samples[name].append(_chunk(ways[name], repeats[name]) / calls)
    return Timings({name: np.array(values) for name, values in samples.items()})


def rounds(names: list[str], seconds: float) -> Iterator[list[str]]:
    """Who is timed in which order, round by round, for about so many seconds; none for nobody.

    Another order each round: who follows whom decides what the caches hold.
    """
    if not names:
        return
    deadline = time.perf_counter() + (seconds / 8 if QUICK else seconds)
    done = 0
    while done < LEAST_ROUNDS or time.perf_counter() < deadline:
        yield names[done % len(names) :] + names[: done % len(names)]
        done += 1


def _repeats(run: Callable[[], Any]) -> int:
    for _ in range(3):  # trace, compile, warm up
        run()
    return max(1, int(_CHUNK_SECONDS / _chunk(run, 1)))


def _chunk(run: Callable[[], Any], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats
