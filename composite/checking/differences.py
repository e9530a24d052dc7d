"""Gradients beside central differences, in float64.

Not for: what the gradients are of (gradients.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from composite.checking.compare import Closeness, Difference
from composite.checking.skipped import Skipped

Array = np.ndarray[Any, Any]

_STEP = 1e-5  # rounding and curvature weigh the same near here
_TOLERANCE = 1e-4
_ELEMENTS = 12  # of each input: two calls each

# Two orders of the same terms, in float64: what they may differ by where terms cancel.
_SAME = 1e-6


def agree(
    found: Sequence[Array],
    own: Sequence[Array],
    total: Callable[[Sequence[Array]], float],
    arrays: Sequence[Array],
) -> Closeness:
    """Compares the gradients `found` with differences of `total`, a function of all arrays.

    Difference where they are not those, and those of the Python function, `own`, are; Skipped
    where the latter are not either.
    """
    worst = 0.0
    for position, at, slope, scale in _slopes(total, arrays):
        error = abs(float(found[position][at]) - slope) / scale
        if error <= _TOLERANCE:
            worst = max(worst, error)
        elif abs(float(own[position][at]) - slope) / scale <= _TOLERANCE:
            raise Difference(
                f"{_element(position, at)} is {found[position][at]}, and numeric differences give "
                f"{slope}"
            )
        else:
            raise Skipped("the body's own gradient is not the numeric one (tf.stop_gradient?)")
    return Closeness(worst, _TOLERANCE)


def same(found: Sequence[Array], own: Sequence[Array]) -> Closeness:
    """Compares gradients in float64 with those of the Python function."""
    worst = 0.0
    for position, (ours, theirs) in enumerate(zip(found, own, strict=True)):
        scale = max(1.0, float(np.max(np.abs(theirs), initial=0.0)))
        errors = np.abs(ours - theirs) / scale
        if not np.all(errors <= _SAME):
            at = tuple(int(k) for k in np.unravel_index(np.argmax(errors), errors.shape))
            raise Difference(
                f"{_element(position, at)} is {ours[at]}, and the Python function's is {theirs[at]}"
            )
        worst = max(worst, float(np.max(errors, initial=0.0)))
    return Closeness(worst, _SAME)


def _element(position: int, at: Sequence[int]) -> str:
    return f"the gradient of input tensor {position} at [{', '.join(map(str, at))}]"


def _slopes(
    total: Callable[[Sequence[Array]], float], arrays: Sequence[Array]
) -> Iterator[tuple[int, tuple[int, ...], float, float]]:
    """For some elements of each floating array: its position, index, slope, and a scale.

    An element at which the slopes to its two sides differ has no derivative, and is left out.
    """
    random = np.random.default_rng(1)
    floats = [i for i, x in enumerate(arrays) if tf.as_dtype(x.dtype).is_floating]
    middle = total(arrays)
    for position, i in enumerate(floats):
        count = min(_ELEMENTS, arrays[i].size)
        for flat in random.choice(arrays[i].size, count, replace=False):
            at = tuple(int(k) for k in np.unravel_index(flat, arrays[i].shape))
            step = _STEP * max(1.0, abs(float(arrays[i][at])))
            sides = [total(_moved(arrays, i, at, s)) for s in (step, -step)]
            right, left = (sides[0] - middle) / step, (middle - sides[1]) / step
            slope = (sides[0] - sides[1]) / (2 * step)
            # Below the sum's own rounding, a difference of sums says nothing.
            scale = max(1.0, abs(slope), abs(middle))
            if np.isfinite(slope) and abs(right - left) <= 1e-2 * scale:
                yield position, at, slope, scale


def _moved(arrays: Sequence[Array], i: int, at: tuple[int, ...], step: float) -> list[Array]:
    copy = arrays[i].copy()
    copy[at] += step
    return [*arrays[:i], copy, *arrays[i + 1 :]]
