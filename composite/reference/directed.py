"""Whether 16-bit results were all rounded to one side, as they are where bits are cut off.

Of numbers that lie between two of a dtype, a rounding to nearest takes about half of them to the
one that is further from zero. A result that never does is within the bounds of rounding, and wrong.

Not for: how far a result may be from the reference (tolerance.py).
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

_BYTES = 2
_BETWEEN = 1 / 8  # of the distance of two numbers: nearer to one, a small error decides
_FEWEST = 128
_ALL = 0.02
_ABOUT_HALF = 0.3
"""The least share of numbers rounded away from zero, and towards it, in TensorFlow's result."""


class Sides:
    """To which side the numbers of an output were rounded, in any number of runs."""

    def __init__(self) -> None:
        # By sign: how many numbers lie between two of the dtype, and how many of these were rounded
        # away from zero by the kernel, and by TensorFlow.
        self._counts = {1: np.zeros(3), -1: np.zeros(3)}

    def add(self, found: Array, exact: Array, own: Array) -> None:
        """Count the numbers of a result, of its reference, and of TensorFlow's result.

        Positive and negative numbers are looked at apart, and equal ones once.
        """
        if found.dtype.itemsize > _BYTES:
            return
        kind = ml_dtypes.finfo(found.dtype)
        signs = np.sign(found.astype(np.float64)).reshape(-1)
        exact, result, other = (
            np.abs(a.astype(np.float64)).reshape(-1) for a in (exact, found, own)
        )
        known = np.isfinite(exact) & np.isfinite(result) & np.isfinite(other)
        known &= exact >= float(kind.tiny)
        known[known] = _is_first((signs * exact)[known])
        exact, result, other, signs = exact[known], result[known], other[known], signs[known]
        step = np.exp2(np.floor(np.log2(exact))) * float(kind.eps)
        part = np.mod(exact / step, 1.0)
        between = (part > _BETWEEN) & (part < 1 - _BETWEEN) & (np.abs(result - exact) < step)
        for sign in self._counts:
            chosen = between & (signs == sign)
            away = [np.count_nonzero(y[chosen] > exact[chosen]) for y in (result, other)]
            self._counts[sign] += (np.count_nonzero(chosen), *away)

    @property
    def is_one_sided(self) -> bool:
        """Whether the kernel always rounded to one side, and TensorFlow did not."""
        for count, *away in self._counts.values():
            if count < _FEWEST:
                continue
            one, usual = (min(n, count - n) / count for n in away)
            if one < _ALL and usual > _ABOUT_HALF:
                return True
        return False


def _is_first(numbers: Array) -> Array:
    """Where a number is not equal to one before it."""
    _, places = np.unique(numbers, return_index=True)
    first = np.zeros(numbers.shape, bool)
    first[places] = True
    return first
