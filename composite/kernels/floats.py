"""How far floating results may be apart: the bounds that kernels and `composite.check` are held to.

Errors are measured against a reference in float64. What is compared may be as far from it as four
times TensorFlow's own ops are, or 64 rounding errors of the dtype, whichever is more.

Not for: where the reference comes from, and what else must agree (dtypes, shapes, NaNs).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import ml_dtypes  # TensorFlow's bfloat16, of which numpy.finfo knows nothing
import numpy as np
import tensorflow as tf

Array = np.ndarray[Any, Any]

_ROUNDINGS = 64
# Runs with other roundings may raise a bound by so much: at a jump they are of another function.
_MOST_RAISED = 8.0
_OF_OWN = 4  # summation in another order is luck: a factor of two happens by itself
_NEARBY = 4  # runs with other roundings
_SIGNS = 4099  # a prime: neighbouring rows are moved in other ways


def is_floating(array: Array) -> bool:
    """Whether an array holds floating numbers, bfloat16 among them."""
    return bool(tf.as_dtype(array.dtype).is_floating)


def allowed(own: float, dtype: Any) -> float:
    """The error that is allowed where TensorFlow's own ops have the error `own`."""
    return max(_OF_OWN * own, _ROUNDINGS * float(ml_dtypes.finfo(dtype).eps))


def raised(bound: float, own: float, others: Iterable[float], dtype: Any) -> float:
    """The bound, if runs with inputs a rounding error away show that roundings matter more.

    Args:
        bound: What is allowed by the one run.
        own: The error of that run.
        others: The errors of those runs.
        dtype: Of what is compared.
    """
    return min(allowed(max([own, *others]), dtype), _MOST_RAISED * bound)


def nearby(arrays: Iterable[Array]) -> Iterator[list[Array]]:
    """The arrays, some times, with each floating number a rounding error up or down."""
    given = list(arrays)
    for seed in range(_NEARBY):
        random = np.random.default_rng(seed)
        yield [_rounded(random, x) for x in given]


def _rounded(random: np.random.Generator, array: Array) -> Array:
    if not is_floating(array):
        return array
    step = float(ml_dtypes.finfo(array.dtype).eps)
    signs = random.choice([-1.0, 1.0], array.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(array.astype(np.float64) * (1 + step * signs)).astype(array.dtype)


class Rounder:
    """Moves numbers by a rounding error up or down: others each time, the same for each seed."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._signs = self._random.choice([-1.0, 1.0], _SIGNS)

    def __call__(self, array: Array) -> Array:
        """A copy with each floating number moved."""
        if not is_floating(array) or not array.size:
            return array
        step = float(ml_dtypes.finfo(array.dtype).eps)
        signs = np.roll(self._signs, self._random.integers(_SIGNS))[: array.size]
        factors = np.resize(1 + step * signs, array.shape)
        wide = np.float64 if array.dtype != np.float32 else np.float32
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(array.astype(wide) * factors.astype(wide)).astype(array.dtype)


def smallest_normal(dtype: Any) -> float:
    """The least positive number that is no denormal."""
    return float(ml_dtypes.finfo(dtype).tiny)


def errors(found: Array, exact: Array) -> Array:
    """The error of each element as a part of |y|, float64; 0 where `exact` is not finite."""
    found, exact = found.astype(np.float64), exact.astype(np.float64)
    result = np.zeros(exact.shape)
    finite = np.isfinite(exact)
    if not finite.any():
        return result
    # Beside an element itself, a hundredth of the largest one: where a sum cancels, rounding is as
    # large as what was summed, and no order of summation is right.
    floor = 1e-2 * np.abs(exact[finite]).max()
    scale = np.abs(exact[finite]) + floor
    difference = np.abs(found[finite] - exact[finite])
    result[finite] = np.divide(difference, scale, out=np.zeros_like(scale), where=scale > 0)
    return result


def in_range(exact: Array, dtype: Any) -> Array:
    """A reference whose numbers beyond those of `dtype` are infinite, as they are there."""
    beyond = np.abs(exact) > float(ml_dtypes.finfo(dtype).max)
    return np.where(beyond, np.copysign(np.inf, exact), exact) if beyond.any() else exact


def unaligned(array: Array) -> Array:
    """A copy whose address has no alignment but an element's."""
    room = np.empty(array.size + 1, array.dtype)
    moved: Array = room[1:].reshape(array.shape)
    moved[...] = array
    return moved
