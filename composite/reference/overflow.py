"""Which results have no known value, since the order of what an op reads decides it.

Where the magnitudes of a sum's finite terms add up to more than the largest number, one order of
them may give a number and another one an infinity, or, with infinities of both signs, a NaN. No
other sum depends on the order so: infinities and NaNs among its terms give the same in each. Nor
does a sum that is beyond the largest number, if the terms of the other sign are not: it is infinite
in any order.

TensorFlow's convolutions add to an element what padding is times an infinity, a NaN, where the
element has no infinite term. Its pools of volumes skip a NaN, or what came before one.

The body is run with each of these values in their place. Where its results differ, none of them is
known; all others are the same whatever the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from composite.reference import floats
from composite.reference.evaluate import Evaluator, Roundings, Run

Array = np.ndarray[Any, Any]

_VALUES = (None, np.inf, -np.inf, np.nan)  # None: the sum without an overflow
_POOLS = ("MaxPool3D", "MaxPool3DGrad")
_PRODUCTS = ("Prod", "Cumprod", "UnsortedSegmentProd")


def undetermined(
    evaluator: Evaluator, inputs: Sequence[Array], dtypes: Sequence[Any]
) -> list[Array]:
    """By output, where a result has no known value.

    `evaluator` runs the body in a precision that may be wider than that of the outputs, `dtypes`.
    """
    runs: list[list[Array]] = []
    for value in _VALUES:
        sums = _Sums(value, _largest(dtypes))
        results = evaluator.run(inputs, Roundings(results=sums.in_range, sums=sums.at))
        runs.append([y.numpy() for y in results])
        if not sums.has_unknown:
            break
    return [
        _differ([_as(y, dtype) for y in outputs])
        for outputs, dtype in zip(zip(*runs, strict=True), dtypes, strict=True)
    ]


class _Sums:
    """One run: what stands for a sum that overflows in some order of its terms."""

    def __init__(self, value: float | None, largest: float) -> None:
        self._value = value
        self._largest = largest
        self.has_unknown = False

    def at(self, op: str, run: Run, inputs: Sequence[Any], results: list[Any]) -> list[Any]:
        """The results of an op, with the value where the order has a say."""
        if op in _POOLS:
            return self._without_nans(run, inputs, results)
        finite = [_finite(x) for x in inputs]
        sizes = run(added(op, [_magnitude(op, x) for x in finite]))
        found = [self._sum(y, size) for y, size in zip(results, sizes, strict=True)]
        if all(map(_is_finite, inputs)):
            return found
        sums, terms = run(finite), _infinite_terms(op, run, inputs)
        return [self._padded(*one) for one in zip(found, sums, terms, strict=True)]

    def _sum(self, result: Any, size: Any) -> Any:
        """A sum of terms of this size together."""
        if not result.dtype.is_floating:
            return result
        beyond = ~(size.numpy() <= self._largest)
        if not beyond.any():
            return result
        y = result.numpy()
        with np.errstate(invalid="ignore"):
            of_other_sign = (size.numpy() - np.abs(y)) / 2
            infinite = (np.abs(y) > self._largest) & (of_other_sign <= self._largest)
        infinite &= np.isfinite(y) & beyond
        unknown = beyond & ~infinite
        self.has_unknown |= bool(unknown.any())
        value = y if self._value is None else self._value
        y = np.where(infinite, np.copysign(np.inf, y), np.where(unknown, value, y))
        return tf.constant(y, result.dtype)

    def _padded(self, result: Any, finite: Any, terms: Any) -> Any:
        """A sum that may be infinite or NaN though none of its terms is."""
        if not result.dtype.is_floating:
            return result
        y, number = result.numpy(), finite.numpy()
        unknown = ~np.isfinite(y) & (terms == 0) & (np.abs(number) <= self._largest)
        self.has_unknown |= bool(unknown.any())
        value = number if self._value is None else y
        return tf.constant(np.where(unknown, value, y), result.dtype)

    def _without_nans(self, run: Run, inputs: Sequence[Any], results: list[Any]) -> list[Any]:
        """The results of a pool that finds another number in the place of NaNs."""
        if not any(x.dtype.is_floating and np.isnan(x.numpy()).any() for x in inputs):
            return results
        self.has_unknown = True
        if self._value is not None and np.isnan(self._value):
            return results
        number = -self._largest if self._value is None else self._largest
        return run([tf.where(tf.math.is_nan(x), tf.constant(number, x.dtype), x) for x in inputs])

    def in_range(self, op: str, result: Any) -> Any:
        """A result as the largest numbers have it: an infinity, or the largest in the first run."""
        y = floats.with_ends(op, result.numpy(), self._largest)
        end = self._largest if self._value is None else np.inf
        beyond = np.isfinite(y) & (np.abs(y) > self._largest)
        return tf.constant(np.where(beyond, np.copysign(end, y), y), y.dtype)


def _is_finite(tensor: Any) -> bool:
    return not tensor.dtype.is_floating or bool(np.isfinite(tensor.numpy()).all())


def _finite(tensor: Any) -> Any:
    """A tensor with zeros for infinities and NaNs."""
    if not tensor.dtype.is_floating:
        return tensor
    return tf.where(tf.math.is_finite(tensor), tensor, tf.zeros_like(tensor))


def _magnitude(op: str, tensor: Any) -> Any:
    """What a term adds to the magnitude of a sum, or may multiply one of a product by."""
    if not tensor.dtype.is_floating:
        return tensor
    return tf.maximum(tf.abs(tensor), 1) if op in _PRODUCTS else tf.abs(tensor)


def added(op: str, operands: list[Any]) -> list[Any]:
    """Operands whose terms an op adds up, those negated that it subtracts."""
    if op != "TensorScatterSub":
        return operands
    tensor, indices, updates = operands
    return [tensor, indices, -updates]


def _infinite_terms(op: str, run: Run, inputs: Sequence[Any]) -> list[Array]:
    """By result, how many of the terms of each element are infinite or NaN."""
    ones = [tf.ones_like(x) if x.dtype.is_floating else x for x in inputs]
    counts = []
    for i, x in enumerate(inputs):
        if not _is_finite(x):
            own = tf.cast(~tf.math.is_finite(x), x.dtype)
            counted = run(added(op, [*ones[:i], own, *ones[i + 1 :]]))
            counts.append([y.numpy() for y in counted])
    return [np.asarray(sum(results)) for results in zip(*counts, strict=True)]


def _largest(dtypes: Sequence[tf.DType]) -> float:
    """The largest number on the way: kernels compute with 16-bit floats in float32."""
    return float(np.finfo(np.float64 if tf.float64 in dtypes else np.float32).max)


def _as(result: Array, dtype: tf.DType) -> Array:
    """A result in its own dtype, with zeros for what is flushed."""
    if not dtype.is_floating:
        return result
    with np.errstate(over="ignore", invalid="ignore"):
        y = result.astype(dtype.as_numpy_dtype)
    return floats.in_double(y)


def _differ(runs: Sequence[Array]) -> Array:
    """Where results of several runs are not the same."""
    first, *others = runs
    found = np.zeros(first.shape, np.bool_)
    for other in others:
        same = first == other
        if floats.is_floating(first):
            same |= np.isnan(first) & np.isnan(other)
        found |= ~same
    return found
