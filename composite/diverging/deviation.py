"""How far one value is from another, and whether that is too far.

Not for: which values belong together (values.py, kernel_cuts.py, versions.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import tensorflow as tf

from composite.reference import tolerance

Array = np.ndarray[Any, Any]


class Deviation(NamedTuple):
    """Two values of one tensor, where they are furthest apart for what is allowed there.

    Attributes:
        at: the index of the element.
        first, second: its two values.
        error: how far apart they are, as a part of the largest |y| of the row (the last dims, as
            many as hold 16 elements); infinite where one is a NaN or an infinity and the other is
            not, and where integers, booleans or strings differ.
        bound: what is allowed, in the same unit.
    """

    at: tuple[int, ...]
    first: Any
    second: Any
    error: float
    bound: float

    @property
    def is_beyond(self) -> bool:
        """Whether the values differ by more than their bound."""
        return self.error > self.bound


SAME = Deviation((), None, None, 0.0, 0.0)


def in_precision(first: Array, second: Array, rtol: float | None) -> Deviation:
    """Two values in two precisions. By default half of the digits of the coarser one may be lost.

    ValueError for values of different shapes.
    """
    _require_same_shape(first, second)
    if not first.size:
        return SAME
    if not _is_numeric(first) or not _is_numeric(second):
        return _worst(first, second, np.where(first != second, np.inf, 0.0), 0.0)
    kinds = [ml_dtypes.finfo(_real(x.dtype)) for x in (first, second)]
    bound = max(float(kind.eps) for kind in kinds) ** 0.5 if rtol is None else rtol
    least = max(tolerance.least_of(kind) for kind in kinds)
    return _worst(first, second, _errors(first, second, least), bound)


def of_kernel(first: Array, second: Array, exact: Array) -> Deviation:
    """A value in place of another, both computed in one precision, and the same in float64.

    The bound is the one that kernels are held to (`reference.tolerance`).
    """
    _require_same_shape(first, second)
    if first.dtype == second.dtype and first.tobytes() == second.tobytes():
        return SAME
    if first.dtype != second.dtype or not tf.as_dtype(first.dtype).is_floating:
        return in_precision(first, second, rtol=1e-5)
    errors = _errors(first, second)
    if np.isinf(errors).any():
        return _worst(first, second, errors, 0.0)
    is_usable = exact.shape == first.shape and np.isfinite(exact[np.isfinite(first)]).all()
    verdict = tolerance.judge(second, tolerance.Reference(exact if is_usable else first, first))
    if verdict.at is None:
        return SAME._replace(error=verdict.error, bound=verdict.allowed)
    at = np.unravel_index(verdict.at, first.shape)
    return _between(first, second, at, verdict.error, verdict.allowed)


def _require_same_shape(first: Array, second: Array) -> None:
    if first.shape != second.shape:
        raise ValueError(f"the shapes differ: {list(first.shape)} and {list(second.shape)}")


def _is_numeric(array: Array) -> bool:
    dtype = tf.as_dtype(array.dtype)
    return bool(dtype.is_floating or dtype.is_complex)


def _real(dtype: Any) -> Any:
    return np.zeros(0, dtype).real.dtype if tf.as_dtype(dtype).is_complex else dtype


def _errors(first: Array, second: Array, least: float = 0.0) -> Array:
    """Of each element, as a part of its row; infinite where one value is finite alone.

    `least`: what may be lost where numbers end.
    """
    wide = np.complex128 if tf.as_dtype(first.dtype).is_complex else np.float64
    a, b = first.astype(wide), second.astype(wide)
    known = np.isfinite(a) & np.isfinite(b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.where(known, np.abs(a - b), np.where(same, 0.0, np.inf))
        size = np.where(known, np.abs(a), 0.0)
    count, length = tolerance.rows_of(first.shape)
    distance = np.where(distance > least, distance, 0.0)
    largest = np.repeat(size.reshape(count, length).max(axis=1), length).reshape(first.shape)
    known = (largest > 0) & np.isfinite(distance)
    out = np.where(distance > 0, np.inf, 0.0)
    return np.asarray(np.divide(distance, largest, out=out, where=known))


def _worst(first: Array, second: Array, errors: Array, bound: float) -> Deviation:
    at = np.unravel_index(int(np.argmax(errors)), errors.shape)
    return _between(first, second, at, float(errors[at]), bound)


def _between(first: Array, second: Array, at: Any, error: float, bound: float) -> Deviation:
    return Deviation(tuple(int(i) for i in at), first[at], second[at], error, bound)
