"""Compares the results of two calls: how far one deviates from the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Deviation:
    """The output that deviates the most.

    Attributes:
        output: its index among the flattened outputs.
        distance: its largest difference, relative to its largest absolute value.
        bound: the distance that is allowed.
    """

    output: int
    distance: float
    bound: float

    @property
    def is_small(self) -> bool:
        """Whether the distance is within the bound."""
        return self.distance <= self.bound


UNMOVED = Deviation(0, 0.0, 0.0)


def flat(result: Any) -> list[Array]:
    """The outputs of a call as arrays, without handles and variants, whose contents are unknown."""
    return [_array(tensor) for tensor in tf.nest.flatten(result, expand_composites=True)]


def deviation(found: Sequence[Array], wanted: Sequence[Array], rtol: float | None) -> Deviation:
    """The output with the largest distance from the expected one, in units of its bound."""
    pairs = enumerate(zip(found, wanted, strict=True))
    deviations = [_deviation_of(k, y, z, rtol) for k, (y, z) in pairs]
    return max(deviations, key=_in_bounds, default=UNMOVED)


def _array(tensor: Any) -> Array:
    is_opaque = isinstance(tensor, tf.Tensor) and tensor.dtype in (tf.resource, tf.variant)
    return np.empty(0) if is_opaque else np.asarray(tensor)


def _deviation_of(index: int, y: Array, z: Array, rtol: float | None) -> Deviation:
    if z.dtype.kind in "biuSUO":
        return Deviation(index, float(not np.array_equal(y, z)), 0.0)
    bound = rtol if rtol is not None else 5e-2 if z.dtype.itemsize == 2 else 1e-3
    wide = np.complex128 if z.dtype.kind == "c" else np.float64
    return Deviation(index, _distance(y.astype(wide), z.astype(wide)), bound)


def _in_bounds(deviation: Deviation) -> float:
    """The distance in units of the bound."""
    if not deviation.distance:
        return 0.0
    return deviation.distance / deviation.bound if deviation.bound else float("inf")


def _distance(y: Array, z: Array) -> float:
    """The largest |y - z| relative to the largest |z|; infinite if NaNs or infinities differ."""
    finite = np.isfinite(z)
    if not np.array_equal(y[~finite], z[~finite], equal_nan=True):
        return float("inf")
    y, z = y[finite], z[finite]
    if not np.isfinite(y).all():
        return float("inf")
    if not z.size:
        return 0.0
    return float(np.max(np.abs(y - z)) / max(np.max(np.abs(z)), np.finfo(np.float32).tiny))
