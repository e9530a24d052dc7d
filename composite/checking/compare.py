"""Whether two results of one call agree.

Integers, booleans and strings must be equal. Floating numbers may differ as far as those of a
kernel may before it is used (`reference.tolerance` is the one rule): an element by its own rounding
errors, and by what rounding does to the body's ops there. The reference is what those ops give in
float64. Reruns with inputs a rounding error away, and with results of ops off by their stated ulps,
show how large rounding errors become. NaNs and infinities must be in the same places, except where
the body's ops overflow and float64 does not, where a rerun has others, and where a sum overflows in
one order of its terms and not in another. Complex numbers are compared by their parts.

Not for: computing any of the results (ways.py).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from composite.reference import floats, tolerance

Array = np.ndarray[Any, Any]

# A reference further off than this is of another function: random numbers of another width, say.
_UNUSABLE = 0.5

Runs = Callable[[], Iterable[Sequence[Array]]]


class Reruns(NamedTuple):
    """What else a result may be, since numbers are rounded; each is asked only where it is needed.

    Attributes:
        nearby: gives the outputs for inputs a rounding error away.
        moved: gives the outputs with the results of ops as far off as is stated of them.
        undetermined: gives, by output, where the order of a sum that overflows decides the result;
            nothing where that is not known.
    """

    nearby: Runs = tuple
    moved: Runs = tuple
    undetermined: Callable[[], Sequence[Array]] = tuple


class Difference(Exception):  # noqa: N818 - the verdict of a comparison
    """Two results do not agree; the message says where and how far."""


_NO_RERUNS = Reruns()


@dataclasses.dataclass(frozen=True)
class Closeness:
    """How close results were that agree.

    Attributes:
        error: the worst error as a part of the row's |y|, or of what rounding may do there if that
            is more, against float64; 0 where all bits are equal.
        bound: the error that was allowed there.
    """

    error: float = 0.0
    bound: float = 0.0

    def worse(self, other: Closeness) -> Closeness:
        """The one with the larger error."""
        return other if other.error >= self.error else self


def compare(
    actual: Sequence[Array],
    expected: Sequence[Array],
    reference: Callable[[], Sequence[Array]] | None = None,
    reruns: Reruns = _NO_RERUNS,
    names: Sequence[str] = (),
) -> Closeness:
    """Compares the outputs of two runs. Difference when they do not agree.

    reference: gives `expected` computed in float64; asked only where bits differ.
    reruns: what rounding makes of `expected`.
    names: what the values are, for people; "output 0" by default.
    """
    if len(actual) != len(expected):
        raise Difference(f"{len(actual)} outputs where {len(expected)} are expected")
    exact: Sequence[Array] | None = None
    worst = Closeness()
    for index, (found, wanted) in enumerate(zip(actual, expected, strict=True)):
        what = names[index] if names else f"output {index}"
        _same_type(what, found, wanted)
        if _identical(found, wanted):
            continue
        if exact is None:
            exact = expected if reference is None else reference()
        worst = worst.worse(_compare(what, found, wanted, exact[index], _of(reruns, index)))
    return worst


def same_bits(first: Sequence[Array], second: Sequence[Array], names: Sequence[str]) -> None:
    """Difference unless two runs gave the same bits; `names` are what the values are."""
    for what, found, wanted in zip(names, first, second, strict=True):
        _same_type(what, found, wanted)
        if not _identical(found, wanted):
            raise Difference(f"{what}: {_first(found, wanted)} (two runs of one call)")


def _same_type(what: str, found: Array, wanted: Array) -> None:
    if found.dtype != wanted.dtype:
        raise Difference(f"{what} is {found.dtype.name}, and {wanted.dtype.name} is expected")
    if found.shape != wanted.shape:
        raise Difference(
            f"{what} has shape {list(found.shape)}, and {list(wanted.shape)} is expected"
        )


def _numeric(array: Array) -> bool:
    dtype = tf.as_dtype(array.dtype)
    return bool(dtype.is_floating or dtype.is_complex)


def _identical(found: Array, wanted: Array) -> bool:
    if not _numeric(found):
        return bool(np.array_equal(found, wanted))
    nan = np.isnan(found) & np.isnan(wanted)
    return bool(np.all(nan | (found == wanted)))


def _first(found: Array, wanted: Array, where: Array | None = None) -> str:
    """Where two arrays differ first (or by most), in words."""
    if where is None:
        where = found != wanted
        if _numeric(found):
            where &= ~(np.isnan(found) & np.isnan(wanted))
    at = np.unravel_index(int(np.argmax(where)), found.shape)
    index = ", ".join(str(int(i)) for i in at)
    return f"at [{index}] it is {found[at]!s}, and {wanted[at]!s} is expected"


class _OfOutput(NamedTuple):
    """The reruns of one output."""

    nearby: Callable[[], Iterable[Array]]
    moved: Callable[[], Iterable[Array]]
    undetermined: Callable[[], Any] = bool

    def mapped(self, function: Callable[[Array], Array]) -> _OfOutput:
        return _OfOutput(lambda: map(function, self.nearby()), lambda: map(function, self.moved()))


def _of(reruns: Reruns, index: int) -> _OfOutput:
    return _OfOutput(
        lambda: (run[index] for run in reruns.nearby()),
        lambda: (run[index] for run in reruns.moved()),
        lambda: masks[index] if (masks := reruns.undetermined()) else False,
    )


def _compare(what: str, found: Array, wanted: Array, exact: Array, reruns: _OfOutput) -> Closeness:
    dtype = tf.as_dtype(found.dtype)
    if dtype.is_complex:

        def part(of: Callable[[Array], Array]) -> Closeness:
            return _compare(what, of(found), of(wanted), of(exact), reruns.mapped(of))

        return part(np.real).worse(part(np.imag))
    if not dtype.is_floating:
        count = np.count_nonzero(found != wanted)
        raise Difference(f"{what} differs in {count} elements: {_first(found, wanted)}")
    wanted = _without_overflow(found, wanted, exact)
    _same_specials(what, found, wanted, reruns)
    if not _usable(exact, wanted):
        exact = wanted
    # A reference in the dtype of the result has roundings as well.
    both = 2 if exact is wanted or exact.dtype == found.dtype else 1
    verdict = tolerance.judge(
        found,
        tolerance.Reference(
            exact,
            wanted,
            nearby=reruns.nearby,
            moved=reruns.moved,
            undetermined=reruns.undetermined,
            of_moved=both * tolerance.OF_MOVED,
        ),
    )
    if verdict.at is not None:
        there = np.arange(found.size).reshape(found.shape) == verdict.at
        far = f"{verdict.error:.2g} of |y|, {verdict.allowed:.2g} is allowed"
        raise Difference(f"{what} is off by {far}; {_first(found, wanted, there)}")
    return Closeness(verdict.error, verdict.allowed)


def _without_overflow(found: Array, wanted: Array, exact: Array) -> Array:
    """`wanted`, with the reference where ops overflowed that a result did not overflow in.

    A kernel computes half in float32, whose largest number is larger.
    """
    if exact.shape != wanted.shape:
        return wanted
    right = floats.in_range(exact.astype(np.float64), wanted.dtype)
    numbers = np.isfinite(found) & np.isfinite(right) & ~np.isfinite(wanted)
    return np.where(numbers, right.astype(wanted.dtype), wanted)


def _same_specials(what: str, found: Array, wanted: Array, reruns: _OfOutput) -> None:
    for name, test in (("NaN", np.isnan), ("infinity", np.isposinf), ("-infinity", np.isneginf)):
        where = _differs(test, found, wanted)
        runs = itertools.chain.from_iterable(more() for more in (reruns.nearby, reruns.moved))
        while where.any() and (run := next(runs, None)) is not None:
            where &= _differs(test, found, run)
        if where.any():
            where &= ~np.asarray(reruns.undetermined())
        if where.any():
            place = _first(found, wanted, where=where)
            raise Difference(f"{what} has a {name} in {where.sum()} other places: {place}")


def _differs(test: Callable[[Array], Array], found: Array, wanted: Array) -> Array:
    # bfloat16 has no isposinf of its own.
    return np.asarray(test(found.astype(np.float64)) != test(wanted.astype(np.float64)))


def _usable(exact: Array, wanted: Array) -> bool:
    """Whether the reference is `wanted` in float64: no overflow that only one of them has."""
    if exact.shape != wanted.shape:
        return False
    if not np.array_equal(np.isfinite(exact.astype(wanted.dtype)), np.isfinite(wanted)):
        return False
    known = np.isfinite(wanted)
    wide, size = wanted[known].astype(np.float64), np.abs(exact[known]).astype(np.float64)
    # Where a sum cancels, rounding is as large as what was summed.
    floor = 1e-2 * size.max(initial=0.0)
    return bool((np.abs(wide - exact[known]) <= _UNUSABLE * (size + floor)).all())
