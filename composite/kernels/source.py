"""The expansion that a kernel is compared with: its results, and what these are held against.

Not for: which inputs it is run on, and whether a kernel is near enough (verify.py, tolerance.py).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from composite.compiler import op_traits
from composite.compiler.tvm import table
from composite.kernels import evaluate, floats
from composite.kernels.tolerance import Reference
from composite.ops import functions

Array = np.ndarray[Any, Any]

_RUNS = 8  # with other roundings, in pairs


class Source:
    """An expansion for exact shapes, and the same in another precision.

    What computes in float64 has no better reference: it is its own, and the same in float32 tells
    how large rounding errors become in it.
    """

    def __init__(self, library: Any) -> None:
        self.body = body = functions.body(library)
        self._library = library.function
        floating = [dtype for dtype in body.input_dtypes if dtype.is_floating]
        self._is_double = bool(floating) and all(dtype == tf.float64 for dtype in floating)
        self._other = functions.in_single(body) if self._is_double else functions.in_double(body)
        self._runs = bool(floating)

    @property
    def has_loop(self) -> bool:
        """Whether there is a loop in it."""
        return any(node.op in table.LOOPS for f in self._library for node in f.node_def)

    @functools.cached_property
    def sums(self) -> bool:
        """Whether an op in it may read more than the elements at one place."""
        traits = (op_traits.of(node.op) for f in self._library for node in f.node_def)
        return any(not one.elementwise and not one.moves_data for one in traits)

    def rounded(self, inputs: Sequence[Array], seed: int) -> list[Array]:
        """The outputs with each result of an op a rounding error up or down.

        So are the inputs where they are summed: where a sum cancels, its own size says nothing of
        its roundings.
        """
        move = floats.Rounder(seed)
        given = [move(x) for x in inputs] if self.sums else inputs
        results = evaluate.evaluate(self.body, given, lambda x: tf.constant(move(x.numpy())))
        return [y.numpy() for y in results]

    @property
    def standard(self) -> str:
        """What the error is measured against."""
        return "float64" if self._runs and not self._is_double else "the expansion"

    def run(self, inputs: Sequence[Array]) -> tuple[list[Array], list[Reference]]:
        """The outputs, and what they are held against."""
        own = [y.numpy() for y in evaluate.evaluate(self.body, inputs)]
        other = self._run_other(inputs)
        if other is None:
            return own, self._references(inputs, own, own)
        if self._is_double:
            coarser = float(np.finfo(np.float32).eps / np.finfo(np.float64).eps)
            return own, self._references(inputs, own, other, coarser)
        return own, self._references(inputs, other, own)

    def _references(
        self,
        inputs: Sequence[Array],
        exact: Sequence[Array],
        own: Sequence[Array],
        coarser: float = 1.0,
    ) -> list[Reference]:
        runs: list[list[Array]] = []

        def nearby(output: int) -> Iterator[Array]:
            for seed in range(_RUNS):
                if seed == len(runs):
                    runs.append(self.rounded(inputs, seed))
                yield runs[seed][output]

        return [
            Reference(x, y, coarser, self.sums, functools.partial(nearby, i))
            for i, (x, y) in enumerate(zip(exact, own, strict=True))
        ]

    def _run_other(self, inputs: Sequence[Array]) -> list[Array] | None:
        if not self._runs:
            return None
        convert = _in_single if self._is_double else floats.in_double
        converted = [convert(x) if floats.is_floating(x) else x for x in inputs]
        try:
            return [y.numpy() for y in evaluate.evaluate(self._other, converted)]
        except (tf.errors.OpError, TypeError, ValueError):  # an op has no kernel for the dtype
            self._runs = False
            return None


def _in_single(array: Array) -> Array:
    return array.astype(np.float32)
