"""How far a kernel's floating result may be from the reference, element by element.

An element may be off by the rounding errors that the ops have together, and by a few times what
rounding does there to the result of TensorFlow's ops. If the ops sum, the elements of a row share
what they are computed from, so that what rounding does to most of a row is allowed to each of its
elements. Otherwise no element is excused by another. Where that does not do, the ops are run again
with other roundings, as large as may be: where a result cancels, they show what is left of it,
which one run may hide by luck.

Not for: where the reference comes from, and what else must agree (dtypes, infinities, NaNs).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from composite.reference import floats

Array = np.ndarray[Any, Any]

# Rounding errors of an element at most, and multiples of what rounding does to TensorFlow's result:
# how near that is to the reference is luck. Runs with other roundings are not: their moves are
# larger than roundings are. A kernel computes 16-bit floats in float32 and rounds them once.
_ROUNDINGS, _NARROW_ROUNDINGS = 64.0, 2.0
_OF_OWN, _NARROW_OF_OWN = 8.0, 2.0
OF_MOVED = 2.0
_NARROW = 2  # bytes
_DIGITS, _NARROW_DIGITS = 2**-6, 2**-2  # of |y|: where more is allowed, no digit is known
_ROW = 16  # elements that a row has at least
_MOST_OF_ROW = 0.75  # of a row, so that one element at a jump is not the measure of all others
_TERMS = 4
_SPREAD = 2  # from most of a row's errors to the largest of many rows


class Verdict(NamedTuple):
    """How far a result is from the reference, and what is allowed where it is too far.

    Attributes:
        error: The largest distance, as a part of the largest |y| of its row. Of a right result,
            where rounding leaves digits of it: what is allowed is little of |y| there.
        allowed: There, in the same unit; of a wrong result, at the element that is furthest beyond
            what is allowed.
        at: The flat index of that element; None if the result is right.
    """

    error: float
    allowed: float = 0.0
    at: int | None = None


class Reference(NamedTuple):
    """What a result is held against.

    Attributes:
        exact: The reference.
        own: The result of the same ops by TensorFlow, whose distance from `exact` shows what
            rounding does.
        coarser: By how much the roundings of `own` are coarser than those of the result.
        sums: Whether an op may read more than the one element at its place.
        nearby: Gives the result of the ops with other roundings, as often as it is asked.
        undetermined: Gives where the order of a sum that overflows decides what the result is.
        roundings: How many rounding errors the ops have together, in units of eps * |y|.
        of_nearby: What multiples of what other roundings do are allowed.
        moved: Gives more such results, each op's as far off as is stated; asked after `nearby`.
        of_moved: What multiples of what those do are allowed.
    """

    exact: Array
    own: Array
    coarser: float = 1.0
    sums: bool = True
    nearby: Callable[[], Iterable[Array]] = tuple
    undetermined: Callable[[], Any] = bool
    roundings: float = _ROUNDINGS
    of_nearby: float = _OF_OWN
    moved: Callable[[], Iterable[Array]] = tuple
    of_moved: float = OF_MOVED

    def reruns(self) -> Iterator[tuple[Array, float]]:
        """The results with other roundings, each with the multiples that are allowed."""
        for run in self.nearby():
            yield run, self.of_nearby
        for run in self.moved():
            yield run, self.of_moved


def judge(found: Array, reference: Reference) -> Verdict:
    """Whether the finite elements of a result are as near to the reference as they must be."""
    kind = ml_dtypes.finfo(found.dtype)
    narrow = found.dtype.itemsize <= _NARROW
    exact, rows = _wide(reference.exact), rows_of(found.shape)
    result = _wide(found)
    known = np.isfinite(exact) & np.isfinite(result)
    distance = _distance(result, exact, known)
    size = np.where(known, np.abs(exact), 0.0)
    scale = _spread(size.reshape(rows).max(axis=1), rows)
    # No digit is known of a sum that overflows on the way to it.
    beyond = np.inf if reference.sums else 0.0
    noise = _distance(_wide(reference.own), exact, known, beyond) / reference.coarser
    roundings = _NARROW_ROUNDINGS if narrow else min(_ROUNDINGS, reference.roundings)
    base = roundings * float(kind.eps) * size + least_of(kind)

    def allowed(noise: Array, multiple: float) -> Array:
        whole = _with_row(noise, rows) if reference.sums else noise
        return np.asarray(base + (min(multiple, _NARROW_OF_OWN) if narrow else multiple) * whole)

    bound = allowed(noise, _OF_OWN)
    if (distance > bound).any():
        bound = np.where(np.reshape(reference.undetermined(), -1), np.inf, bound)
    if (distance > bound).any():
        noise = np.zeros_like(noise)
        for other, multiple in reference.reruns():
            noise = np.maximum(noise, _distance(_wide(other), exact, known, beyond))
            bound = np.maximum(bound, allowed(noise, multiple))
            if not (distance > bound).any():
                break
    if not (distance > bound).any():
        # Where the roundings of TensorFlow's own ops are as large as the result, no share of |y|
        # says how right it is.
        has_digits = bound <= (_NARROW_DIGITS if narrow else _DIGITS) * scale
        if not has_digits.any():
            return Verdict(0.0)
        error = np.divide(distance, scale, out=np.full_like(distance, -1.0), where=has_digits)
        worst = int(np.argmax(error))
        return Verdict(float(error[worst]), float(bound[worst] / scale[worst]))
    at = int(np.argmax(distance / bound))
    unit = scale[at] or 1.0
    return Verdict(float(distance[at] / unit), float(bound[at] / unit), at)


def _wide(array: Array) -> Array:
    return array.astype(np.float64).reshape(-1)


def _distance(found: Array, exact: Array, known: Array, beyond: float = 0.0) -> Array:
    """How far elements are apart that are known, `beyond` where one overflows; 0 elsewhere."""
    both = known & np.isfinite(found)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(np.where(both, found, 0.0) - np.where(both, exact, 0.0))
    return np.where(known & ~both, beyond, distance)


def rows_of(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and their length: the last dimensions, as many as hold some elements."""
    total, length = int(np.prod(shape)), 1
    for dim in reversed(shape):
        if length >= _ROW:
            break
        length *= dim
    return total // length, length


def _spread(values: Array, rows: tuple[int, int]) -> Array:
    return np.repeat(values, rows[1])


def _with_row(noise: Array, rows: tuple[int, int]) -> Array:
    """What rounding does to an element, or to most of its row."""
    lines = noise.reshape(rows)
    place = min(rows[1] - 1, int(rows[1] * _MOST_OF_ROW))
    most = np.partition(lines, place, axis=1)[:, place]
    return np.maximum(noise, _SPREAD * _spread(most, rows))


def least_of(kind: Any) -> float:
    """What may be lost where numbers end, in a few terms."""
    return _TERMS * float(kind.tiny if floats.flushes(kind.dtype) else kind.smallest_subnormal)
