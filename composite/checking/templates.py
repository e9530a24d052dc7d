"""Which ranks and which equal dims the inputs of an op must have: found by trying.

A declaration says nothing about shapes, and a call with shapes that do not fit compares two errors
only. So the Python function is run on many small calls first, and those that it takes are kept.

Not for: the values of samples (samples.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

# The shape of each input tensor: a number is a symbol, equal ones are equal sizes.
Template = tuple[tuple[int, ...], ...]

SYMBOLS = 4
_SIZES = (2, 3, 4, 5)
_TRIES = 400
_ENOUGH = 12


def find(
    count: int, accepts: Callable[[Template, Sequence[int]], bool], random: np.random.Generator
) -> list[Template]:
    """Templates for `count` tensors that `accepts(template, sizes)` takes; simple ones first."""
    found: list[Template] = []
    for template in itertools.islice(_candidates(count, random), _TRIES):
        if template not in found and accepts(template, _SIZES):
            found.append(template)
            if len(found) == _ENOUGH:
                break
    return found


def _candidates(count: int, random: np.random.Generator) -> Iterator[Template]:
    for rank in (1, 2, 3, 0):  # all of one shape
        yield (tuple(range(rank)),) * count
    while True:
        ranks = random.integers(0, 4, count)
        symbols = int(random.integers(1, SYMBOLS + 1))
        yield tuple(tuple(int(s) for s in random.integers(0, symbols, rank)) for rank in ranks)
