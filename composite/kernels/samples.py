"""The inputs that a kernel is checked on, with the results of its expansion and of float64.

Not for: which numbers these are (reference/adversarial.py), and whether a kernel is accurate enough
(verify.py).
"""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from composite.binding.kernel_request import KernelRequest
from composite.kernels import shapes
from composite.kernels.expansions import expand
from composite.reference import adversarial, floats
from composite.reference.domains import cast_to_places, under_roots
from composite.reference.source import CPU, Arithmetic, Source
from composite.reference.tolerance import Reference

Array = np.ndarray[Any, Any]

_MILDER = 3  # how often the magnitudes of a draw are halved, in turn
_KEPT = 256 << 20  # bytes of inputs and results


class Sample(NamedTuple):
    """One set of inputs as a kernel takes them, with the expected results."""

    shapes: list[tuple[int, ...]]
    draw: adversarial.Draw
    inputs: list[Array]
    expected: list[Array]
    references: list[Reference]
    source: Source

    @property
    def size(self) -> int:
        """Bytes."""
        results = [array for r in self.references for array in (r.exact, r.own)]
        return sum(array.nbytes for array in [*self.inputs, *self.expected, *results])


class Samples:
    """Samples of given shapes, computed on first use and kept for other kernels."""

    def __init__(  # noqa: PLR0913 - shapes, and what is compared with them
        self,
        expansions: Callable[[Sequence[tuple[int, ...]]], Any],
        cases: Sequence[Sequence[tuple[int, ...]]],
        sizes: Sequence[int] = (),
        arithmetic: Arithmetic = CPU,
        further: Sequence[Sequence[tuple[int, ...]]] = (),
        *,
        keeps: bool = True,
    ) -> None:
        """`expansions(shapes)` gives the expansion (a FunctionDefLibrary) for exact shapes.

        The last of the `cases` has adversarial inputs too. `sizes`: the inputs that have a value
        instead of a shape in each case. `arithmetic`: that of the kernels' device. `further`:
        cases that the expansion may reject. `keeps`: whether several kernels are compared with
        them.
        """
        self._expansions = expansions
        self._cases = cases
        self._sizes = sizes
        self._arithmetic = arithmetic
        self._further = [one for one in further if one not in cases]
        self._most_kept = _KEPT if keeps else 0
        self._kept: list[Sample] = []
        self._firsts: list[Sample] = []

    def __iter__(self) -> Iterator[Sample]:
        """Yields the samples, always in the same order."""
        if self._kept:
            yield from self._kept
            return
        found: list[Sample] = []
        size = 0
        firsts: list[Sample] = []
        for sample in self._computed():
            size += sample.size
            if size <= self._most_kept:
                found.append(sample)
            if all(sample.shapes != one.shapes for one in firsts):
                firsts.append(sample)
            yield sample
        self._firsts = firsts
        if size <= self._most_kept:
            self._kept = found

    def firsts(self) -> list[Sample]:
        """The first sample of each list of shapes, which are kept in any case."""
        if not self._firsts:
            collections.deque(self, 0)
        return self._firsts

    def _computed(self) -> Iterator[Sample]:
        for number, case in enumerate(self._cases):
            yield from self._of(case, number, all_kinds=number == len(self._cases) - 1)
        for number, case in enumerate(self._further, len(self._cases)):
            with contextlib.suppress(tf.errors.OpError):
                yield from self._of(case, number, all_kinds=False)

    def _of(
        self, case: Sequence[tuple[int, ...]], number: int, *, all_kinds: bool
    ) -> Iterator[Sample]:
        source = Source(self._expansions(case), self._arithmetic)
        draws = adversarial.draws(
            source.body.input_dtypes,
            shapes.of_inputs(case, self._sizes),
            number,
            all_kinds=all_kinds,
            takes_long=lambda: source.takes_long,
            fed_back=source.has_loop,
            tensor_float_32=self._arithmetic.tensor_float_32,
        )
        absolute: frozenset[int] | None = None
        for draw in draws:
            own = draw.with_sizes(shapes.of_sizes(case, self._sizes))
            if absolute is None:
                absolute = _not_below_zero(own, source)
            sample = _taken(list(case), own.with_absolute(absolute), source)
            if sample is not None:
                yield sample


def _not_below_zero(draw: adversarial.Draw, source: Source) -> frozenset[int]:
    """The inputs that a root reads in a sum, if the sum may be negative; else none.

    It may be if a result is NaN; integer results, such as places, do not show that.
    """
    inputs = under_roots(source.body)
    if not inputs:
        return inputs
    try:
        results = source.own(draw.arrays)
    except tf.errors.OpError:
        return frozenset()
    may_be = any(not floats.is_floating(y) or np.isnan(y).any() for y in results)
    return inputs if may_be else frozenset()


def _taken(shapes: list[tuple[int, ...]], draw: adversarial.Draw, source: Source) -> Sample | None:
    """The sample of a draw, or of its first variation with other integers that is accepted.

    Floats that are cast to indices are then 0 and 1, as integers are. The ops may divide by a zero,
    but only 0 is an index into a dim of size 1. None if the expansion accepts no variation.
    """
    places = cast_to_places(source.body)
    near = [draw.with_places(places)] if places else []
    own = near[0] if near else draw
    others = [*near, adversarial.without_zeros(own), adversarial.with_zeros(own)]
    for one in (draw, *others):
        try:
            return _sample(shapes, one, source)
        except tf.errors.OpError:
            if one is others[-1] and not draw.refusable:
                raise
    return None


def _sample(shapes: Sequence[tuple[int, ...]], draw: adversarial.Draw, source: Source) -> Sample:
    """The sample of a draw, with smaller magnitudes if results leave the range of their dtype.

    Rounding decides whether a result near the largest number overflows. A denormal result depends
    on which intermediate values are flushed to zero, and so on the order of products.
    """
    milder = iter(range(0 if draw.special or draw.denormal else _MILDER))
    while True:
        inputs = [floats.unaligned(x) for x in draw.arrays]
        expected, references = source.run(inputs)
        in_range = all(map(_overflow_alike, expected, references)) and not any(
            map(_underflows, references)
        )
        if in_range or next(milder, None) is None:
            given = [
                np.zeros(draw.sizes[i], x.dtype) if i in draw.sizes else x
                for i, x in enumerate(inputs)
            ]
            return Sample(list(shapes), draw, given, expected, references, source)
        draw = draw.milder()


def _underflows(reference: Reference) -> bool:
    """Whether a nonzero result is denormal, in a dtype whose denormals are flushed."""
    if not floats.is_floating(reference.own) or not floats.flushes(reference.own.dtype):
        return False
    largest = float(np.abs(reference.exact).max(initial=0.0))
    return 0.0 < largest < floats.smallest_normal(reference.own.dtype)


def _overflow_alike(expected: Array, reference: Reference) -> bool:
    """Whether the results in both precisions are finite in the same places."""
    if not floats.is_floating(expected):
        return True
    exact = floats.in_range(reference.exact, expected.dtype)
    return bool((np.isfinite(expected) == np.isfinite(exact)).all())


def samples_of(  # noqa: PLR0913 - as Samples
    request: KernelRequest,
    minimums: Sequence[int],
    divisors: Sequence[int] = (),
    arithmetic: Arithmetic = CPU,
    telling: Sequence[Sequence[int]] = (),
    *,
    keeps: bool = True,
) -> Samples:
    """The samples for the kernels of a request: the sizes of its call, and awkward ones.

    `minimums` and `divisors` cover all of the kernels. `telling`: further values of the symbols,
    used where the expansion accepts them. `keeps`: as Samples.
    """
    dims = request.in_shapes
    names = shapes.symbols(dims)
    cases = [shapes.samples(names, request.hint, minimums, divisors)]
    if names:
        cases.append(shapes.odd_samples(names, minimums, divisors))
    return Samples(
        lambda exact: expand(request, exact),
        [shapes.substitute(dims, values) for values in cases],
        request.size_inputs,
        arithmetic,
        [shapes.substitute(dims, dict(zip(names, values, strict=True))) for values in telling],
        keeps=keeps,
    )
