"""Two kernels beside each other: rounds in which both run, in turns, and what they say.

A spell of noise hits both, so what counts is their ratio in each round. Not for: how one is run.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from composite.kernels.tuned import Measured

FEWEST = 7
_MOST = 80
_HOPELESS = 1.1  # a candidate whose better rounds are slower than this is not measured further


class Round(NamedTuple):
    """Seconds of one call of each kernel."""

    default: float
    candidate: float


def run(
    default: Callable[[], float], candidate: Callable[[], float], seconds: float
) -> list[Round]:
    """Rounds for so many seconds; a function runs its kernel and gives the seconds of a call."""
    rounds: list[Round] = []
    end = time.perf_counter() + seconds
    while len(rounds) < _MOST:
        if len(rounds) >= FEWEST:
            if time.perf_counter() > end:
                break
            if statistics.quantiles(_ratios(rounds), n=4)[0] > _HOPELESS:
                break
        if len(rounds) % 2:  # who follows whom decides what the caches hold
            theirs, ours = candidate(), default()
        else:
            ours, theirs = default(), candidate()
        rounds.append(Round(ours, theirs))
    return rounds


def summary(rounds: Sequence[Round], against: str) -> Measured:
    """What rounds say; `against` is the default's code."""
    low, ratio, high = statistics.quantiles(_ratios(rounds), n=4)
    default_us = max(statistics.median(r.default for r in rounds) * 1e6, 0.01)
    return Measured(ratio * default_us, default_us, ratio, low, high, len(rounds), against)


def _ratios(rounds: Sequence[Round]) -> list[float]:
    # A nanosecond: what the clock cannot tell apart is equal.
    return [max(r.candidate, 1e-9) / max(r.default, 1e-9) for r in rounds]
