"""Times of the ways to run a function, taken until it is clear which is the fastest."""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from composite.compiler import account
from composite.progress import activity

_FEWEST, _FEWEST_LONG = 7, 3  # rounds of timed runs; the latter of runs that take long
_LEAST = 0.1  # seconds of timed runs of each function, where the result is clear,
_BUDGET = 2.0  # and where it is not, roughly


@account.step("time")
def times(functions: Sequence[Any], inputs: Sequence[Any], gain: float) -> list[float]:
    """The median seconds of a call of each function, in turns, until it is clear which to call."""
    activity.step("measure", _BUDGET * len(functions))
    seconds: list[list[float]] = [[] for _ in functions]
    begin = time.perf_counter()
    while not _is_enough(seconds, (time.perf_counter() - begin) / len(functions), gain):
        for function, own in zip(functions, seconds, strict=True):
            start = time.perf_counter()
            result = function(*inputs)
            tf.nest.map_structure(lambda tensor: tensor.numpy(), result)
            own.append(time.perf_counter() - start)
    return [statistics.median(own) for own in seconds]


def _is_enough(seconds: Sequence[Sequence[float]], spent: float, gain: float) -> bool:
    """Whether to stop timing after so many seconds of each function."""
    fewest = _FEWEST if spent < _BUDGET / 2 else _FEWEST_LONG
    if len(seconds[0]) < fewest:
        return False
    return spent >= (_LEAST if _is_clear(seconds, gain) else _BUDGET)


def _is_clear(seconds: Sequence[Sequence[float]], gain: float) -> bool:
    """Whether it is certain, for each two functions, if the second gains so much.

    The 95 % confidence interval of the median ratio must not contain the gain. Its ends are order
    statistics, of ranks n / 2 - sqrt(n) and n / 2 + sqrt(n).
    """
    for first, second in itertools.combinations(seconds, 2):
        ratios = sorted(a / b for a, b in zip(first, second, strict=True))
        place = max(int(len(ratios) / 2 - math.sqrt(len(ratios))), 0)
        if ratios[place] < gain < ratios[-1 - place]:
            return False
    return True
