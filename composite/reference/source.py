"""The expansion that a kernel is compared with: its results, and what these are held against.

Not for: on which inputs it is run (adversarial.py), and whether a result is near enough
(tolerance.py).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from composite.compiler import account, op_traits
from composite.compiler.tvm import table
from composite.ops import functions
from composite.reference import cancellation, floats, overflow, ulps
from composite.reference.evaluate import Evaluator, Roundings, Run, Step
from composite.reference.tolerance import OF_MOVED, Reference
from composite.reference.whole import Whole, gives_the_same

Array = np.ndarray[Any, Any]

_NARROW = (tf.half, tf.bfloat16)
# With other roundings, in pairs. Two numbers that cancel move apart in one pair of two: in fewer
# runs a sum may show by chance nothing of what its order does to it.
_RUNS = 16
# More of them, in which few numbers move. All that move by one of eight bits add up to more than
# the few signs that a sum of them may have: what those decide is seen nearer to it.
_GENTLE_RUNS, _GENTLE_SHARE = 8, 1 / 64
# Where numbers end, each of them may be zero or not, and what is lost is multiplied later.
_FLUSHED_RUNS = 4
_MOST_STEPS = 20_000  # ops of a run


class Arithmetic(NamedTuple):
    """How a device computes where devices differ.

    Attributes:
        tensor_float_32: whether factors of float32 products may have 10 bits of mantissa, as those
            of TensorFlow's own ops on a GPU whose tensor cores may be used.
        keeps_denormals: whether they are numbers, as on a GPU. TensorFlow's threads take them for
            zeros.
    """

    tensor_float_32: bool = False
    keeps_denormals: bool = False


CPU = Arithmetic()


class Source:
    """An expansion for exact shapes, and the same in another precision.

    What computes in float64 has no better reference: it is its own, and the same in float32 tells
    how large rounding errors become in it.

    It runs on the CPU whatever `arithmetic` says, but rounds the factors of products as that does.
    The reference stays float64: where that has normal numbers of denormals that the CPU takes for
    zeros, a result may be either.
    """

    def __init__(self, library: Any, arithmetic: Arithmetic = CPU) -> None:
        self.body = body = functions.body(library)
        rounded = arithmetic.tensor_float_32
        self._roundings = Roundings(
            factors=_of_tensors(floats.in_tensor_float_32) if rounded else None
        )
        self._in_double = _in_double if arithmetic.keeps_denormals else floats.tensor_in_double
        self._library = library.function
        floating = [dtype for dtype in body.input_dtypes if dtype.is_floating]
        self._is_double = bool(floating) and all(dtype == tf.float64 for dtype in floating)
        other = functions.in_single(body) if self._is_double else functions.in_double(body)
        self._other_body = other
        self._evaluator, self._other = Evaluator(body), Evaluator(other)
        self._is_narrow = any(dtype in _NARROW for dtype in floating)
        self._runs = bool(floating)
        has_ends = any(node.op in floats.FROM_ENDS for f in self._library for node in f.node_def)
        is_single = not self._is_double and not self._is_narrow
        self._ends = _ENDS_OF_SINGLE if has_ends and is_single else Roundings()
        self._count = _Count()  # of the last run that was counted
        self._last: tuple[Sequence[Array], list[Any]] | None = None  # inputs, and them converted

    @property
    def has_loop(self) -> bool:
        """Whether there is a loop in it."""
        return any(node.op in table.LOOPS for f in self._library for node in f.node_def)

    @functools.cached_property
    def sums(self) -> bool:
        """Whether an op in it may read more than the elements at one place."""
        traits = (op_traits.of(node.op) for f in self._library for node in f.node_def)
        return any(not one.elementwise and not one.moves_data for one in traits)

    def rounded(self, inputs: Sequence[Array], seed: int, share: float = 1.0) -> list[Array]:
        """The outputs with a share of the results of ops as far off, up or down, as they may be.

        The inputs are moved by a rounding error where they are summed: where a sum cancels, its own
        size says nothing of its roundings.
        """
        move = floats.Rounder(seed, share)
        given = [move(x) for x in inputs] if self.sums else inputs

        def moved(op: str, result: Any) -> Any:
            return tf.constant(move(result.numpy(), ulps.of(op)))

        def summed(op: str, run: Run, inputs: Sequence[Any], results: list[Any]) -> list[Any]:
            """A sum in another order is that of terms which are moved, each by as much."""
            if op not in ulps.OF_TERMS:
                return results
            last = max((i for i, x in enumerate(inputs) if x.dtype.is_floating), default=None)
            if last is None:
                return results
            terms = move(inputs[last].numpy(), ulps.Ulps(ulps.halvings(op, inputs) / 2))
            return run([*inputs[:last], tf.constant(terms), *inputs[last + 1 :]])

        return self._run(given, self._roundings._replace(results=moved, sums=summed))

    def moved(self, inputs: Sequence[Array]) -> Iterator[list[Array]]:
        """The outputs of runs that are `rounded` in all ways that a result is judged by."""
        for seed in range(_RUNS + _GENTLE_RUNS):
            yield self.rounded(inputs, seed, 1.0 if seed < _RUNS else _GENTLE_SHARE)

    @property
    def standard(self) -> str:
        """What the error is measured against."""
        return "float64" if self._is_wider else "the expansion"

    def own(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs alone."""
        return self._run(inputs, self._roundings)

    def run(self, inputs: Sequence[Array]) -> tuple[list[Array], list[Reference]]:
        """The outputs, and what they are held against."""
        own = self._counted(inputs)
        other = self._run_other(inputs)
        roundings = self._count.roundings
        if self._is_wider and other is not None:
            return own, self._references(inputs, other, own, roundings)
        if other is None:
            return own, self._references(inputs, own, own, roundings)
        coarser = float(np.finfo(np.float32).eps / np.finfo(np.float64).eps)
        return own, self._references(inputs, own, other, roundings, coarser)

    def _counted(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs. What has run long is not counted again, and runs as one graph."""
        if self.takes_long and self._whole is not None:
            return self._run_whole(self._whole, inputs)
        count = _Count()
        own = self._run(inputs, self._roundings, count)
        self._count = count
        return own

    @property
    def steps(self) -> int:
        """How many ops a run has, by the last one that was counted."""
        return self._count.steps

    @property
    def takes_long(self) -> bool:
        """Whether a run has more ops than every kind of inputs is worth."""
        return self.steps > _MOST_STEPS

    @functools.cached_property
    def _whole(self) -> Whole | None:
        """The body as one graph; None where its results are not those of a run that is counted."""
        is_plain = self._roundings == Roundings() and gives_the_same(self.body)
        return Whole(self.body) if is_plain else None

    @functools.cached_property
    def _other_whole(self) -> Whole | None:
        is_plain = self._ends == Roundings() and gives_the_same(self._other_body)
        return Whole(self._other_body) if is_plain else None

    @account.step("reference")
    def _run_whole(self, whole: Whole, inputs: Sequence[Any]) -> list[Array]:
        return whole.run(inputs)

    def _references(
        self,
        inputs: Sequence[Array],
        exact: Sequence[Array],
        own: Sequence[Array],
        roundings: float,
        coarser: float = 1.0,
    ) -> list[Reference]:
        runs = _Kept(self._nearby(inputs))

        def nearby(output: int) -> Iterator[Array]:
            return (run[output] for run in runs)

        # A reference that is the ops' own result has their roundings as well.
        of_both = 1 if self._is_wider else 2
        masks = functools.cache(functools.partial(self.undetermined, inputs))

        def undetermined(output: int) -> Array:
            return masks()[output]

        return [
            Reference(
                x,
                y,
                coarser,
                self.sums,
                functools.partial(nearby, i),
                functools.partial(undetermined, i),
                of_both * roundings,
                of_both * OF_MOVED,
            )
            for i, (x, y) in enumerate(zip(exact, own, strict=True))
        ]

    def _nearby(self, inputs: Sequence[Array]) -> Iterator[list[Array]]:
        """The outputs with other roundings."""
        if self._is_narrow:  # a kernel has the roundings of float32
            yield self._run_in_single(inputs)
        if self._roundings.factors is not None:
            cut = Roundings(factors=_of_tensors(floats.cut_to_tensor_float_32))
            yield self._run(inputs, cut)
        yield from self.moved(inputs)
        if self.sums:
            yield self._run(inputs, self._roundings._replace(sums=cancellation.without_rest))
        for seed in range(_FLUSHED_RUNS if self._is_wider else 0):
            flush = floats.Flusher(seed)
            yield self._run_flushed(inputs, flush)
            if not flush.has_flushed:
                break

    @account.step("reference")
    def _run_flushed(self, inputs: Sequence[Array], flush: floats.Flusher) -> list[Array]:
        roundings = Roundings(results=lambda _, y: tf.constant(flush(y.numpy())))
        return [y.numpy() for y in self._other.run(self._converted(inputs), roundings)]

    @property
    def _is_wider(self) -> bool:
        """Whether the reference is the same in float64."""
        return self._runs and not self._is_double

    @account.step("reference")
    def undetermined(self, inputs: Sequence[Array]) -> list[Array]:
        """By output, where the order of a sum that overflows has a say (`overflow`)."""
        evaluator = self._other if self._is_wider else self._evaluator
        given = self._converted(inputs) if self._is_wider else inputs
        return overflow.undetermined(evaluator, given, self.body.output_dtypes)

    @account.step("reference")
    def _run(
        self,
        inputs: Sequence[Array],
        roundings: Roundings,
        seen: Callable[[Step], None] | None = None,
    ) -> list[Array]:
        return [y.numpy() for y in self._evaluator.run(inputs, roundings, seen=seen)]

    @functools.cached_property
    def _single(self) -> Evaluator:
        return Evaluator(functions.in_dtype(self.body, _NARROW, tf.float32))

    @account.step("reference")
    def _run_in_single(self, inputs: Sequence[Array]) -> list[Array]:
        narrow = [dtype.as_numpy_dtype for dtype in _NARROW]
        given = [_in_single(x) if x.dtype in narrow else x for x in inputs]
        return [y.numpy() for y in self._single.run(given)]

    @account.step("reference")
    def _run_other(self, inputs: Sequence[Array]) -> list[Array] | None:
        if not self._runs:
            return None
        try:
            given = self._converted(inputs)
            if self.takes_long and self._other_whole is not None:
                arrays = [x.numpy() if tf.is_tensor(x) else x for x in given]
                return self._other_whole.run(arrays)
            results = self._other.run(given, self._ends)
            return [y.numpy() for y in results]
        except (tf.errors.OpError, TypeError, ValueError):  # an op has no kernel for the dtype
            self._runs = False
            return None

    def _converted(self, inputs: Sequence[Array]) -> list[Any]:
        """The inputs in the other precision, as tensors; those of one sample are made once."""
        if self._last is None or self._last[0] is not inputs:
            self._last = None  # before others take as much memory
            convert = _in_single if self._is_double else self._in_double
            with tf.device("CPU:0"):
                given = [
                    tf.convert_to_tensor(convert(x)) if floats.is_floating(x) else x for x in inputs
                ]
            self._last = inputs, given
        return self._last[1]


class _Kept:
    """What an iterator gives, as often as it is asked."""

    def __init__(self, given: Iterator[list[Array]]) -> None:
        self._given = given
        self._kept: list[list[Array]] = []

    def __iter__(self) -> Iterator[list[Array]]:
        """Takes more from the iterator only when there is no other left."""
        for number in itertools.count():
            if number == len(self._kept):
                more = next(self._given, None)
                if more is None:
                    return
                self._kept.append(more)
            yield self._kept[number]


class _Count:
    """What the ops of a run are together.

    Attributes:
        steps: How many have run.
        roundings: Their rounding errors, in units of eps * |y|.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.roundings = 0.0

    def __call__(self, step: Step) -> None:
        """Adds those of an op: of a sum of blocks, as many as halving them would take."""
        self.steps += 1
        op = step.node.op
        computes = op != "Const" and not op_traits.of(op).moves_data and not step.is_call
        if not computes or not any(y.dtype.is_floating for y in step.results):
            return
        self.roundings += ulps.of(op).result
        if op in ulps.OF_TERMS:
            self.roundings += ulps.halvings(op, step.inputs)


def _with_ends_of_single(op: str, result: Any) -> Any:
    if op not in floats.FROM_ENDS:
        return result
    return tf.constant(floats.with_ends(op, result.numpy(), float(np.finfo(np.float32).max)))


_ENDS_OF_SINGLE = Roundings(results=_with_ends_of_single)


def _of_tensors(function: Callable[[Array], Array]) -> Callable[[Any], Any]:
    return lambda tensor: tf.constant(function(tensor.numpy()))


def _in_double(array: Array) -> Array:
    return array.astype(np.float64)


def _in_single(array: Array) -> Array:
    with np.errstate(over="ignore"):
        return array.astype(np.float32)
