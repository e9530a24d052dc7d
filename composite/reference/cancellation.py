"""Sums that cancel: roundings decide whether anything is left of them, by which may be divided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import tensorflow as tf

from composite.reference import ulps
from composite.reference.evaluate import Run
from composite.reference.overflow import added


def without_rest(op: str, run: Run, inputs: Sequence[Any], results: list[Any]) -> list[Any]:
    """The results of an op, with zeros for sums that are no larger than their rounding errors.

    The error of a sum in any order is bounded by eps times its number of additions in a row times
    the sum of its terms' magnitudes.
    """
    if op not in ulps.OF_TERMS:
        return results
    magnitudes = [tf.abs(x) if x.dtype.is_floating else x for x in inputs]
    sizes = run(added(op, magnitudes))
    roundings = ulps.halvings(op, inputs)
    return [_without(y, size, roundings) for y, size in zip(results, sizes, strict=True)]


def _without(result: Any, size: Any, roundings: float) -> Any:
    if not result.dtype.is_floating:
        return result
    error = roundings * float(ml_dtypes.finfo(result.dtype.as_numpy_dtype).eps)
    is_rest = tf.math.is_finite(result) & (tf.abs(result) <= error * size)
    return tf.where(is_rest, tf.zeros_like(result), result)
