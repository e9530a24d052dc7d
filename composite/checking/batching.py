"""An op under tf.vectorized_map, beside its Python function run for each element.

Not for: which rule of TensorFlow batches which op (composite/batching.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from composite.binding import settings
from composite.checking.compare import Closeness, Difference, Reruns, compare
from composite.checking.oracle import Case, Outcome, outcome, writes_variables
from composite.checking.sample import Sample
from composite.checking.skipped import Skipped

Array = np.ndarray[Any, Any]

_FACTORS = (1.0, 0.75, 1.125)  # of each element of the batch: exact in every floating dtype


def mapped(case: Case) -> Closeness:
    """A batch of the call's floating inputs, each row a little different, is mapped over.

    All rows share the variables.
    """
    if not case.dtypes:
        raise Skipped("no outputs")
    if case.expected.error is not None:
        raise Skipped("the call raises")
    if writes_variables(case):
        raise Skipped("it writes variables, which all rows of a batch share")
    rows = [Case(case.op, _scaled(case.sample, factor)) for factor in _FACTORS]
    expected = _stacked(rows, [row.expected.values for row in rows])
    with settings.options(backend="tf"):
        found = _mapped(rows, lambda inputs: case.op(*inputs, **case.sample.attrs))
    if found.error is None:
        try:
            return _compared(rows, found, expected)
        except Difference as difference:
            worst = difference
    else:
        worst = Difference(f"it raises {found.told}, and the Python function does not")
    # TensorFlow may not batch the body either, or give it other results.
    own = _mapped(rows, tf.function(case.python))
    if own.error is not None:
        raise Skipped(f"tf.vectorized_map of the Python function raises {own.told}")
    if found.error is not None:
        raise worst
    return _compared(rows, found, own.values)


def _compared(rows: Sequence[Case], found: Outcome, expected: Sequence[Array]) -> Closeness:
    def stacked(runs: Callable[[Case], Iterable[Sequence[Array]]]) -> Iterator[list[Array]]:
        each = zip(*(runs(row) for row in rows), strict=False)  # a row may have fewer runs
        return (_stacked(rows, run) for run in each)

    reruns = Reruns(
        lambda: stacked(lambda row: row.reruns.nearby()),
        lambda: stacked(lambda row: row.reruns.moved()),
    )
    return compare(found.values, expected, lambda: _stacked(rows, _references(rows)), reruns)


def _scaled(sample: Sample, factor: float) -> Sample:
    def scaled(array: Array) -> Array:
        return array * array.dtype.type(factor) if _is_floating(array) else array

    return sample.replaced(sample.label, scaled, variable=lambda held: held)


def _is_floating(array: Array) -> bool:
    return bool(tf.as_dtype(array.dtype).is_floating)


def _references(rows: Sequence[Case]) -> list[Sequence[Array]]:
    return [row.reference()[: len(row.dtypes)] for row in rows]


def _stacked(rows: Sequence[Case], values: Sequence[Sequence[Array]]) -> list[Array]:
    if any(row.expected.error is not None for row in rows):
        raise Skipped("the call raises for other numbers")
    outputs = list(zip(*(y[: len(rows[0].dtypes)] for y in values), strict=True))
    if any(len({y.shape for y in output}) > 1 for output in outputs):
        raise Skipped("other numbers give other shapes")
    return [np.stack(output) for output in outputs]


def _mapped(rows: Sequence[Case], function: Callable[[Any], Any]) -> Outcome:
    """The function mapped over the floating tensors; over all, where none is."""
    flat = [list(row.sample.arrays()) for row in rows]
    mappable = [i for i, held in enumerate(rows[0].sample.of_variables()) if not held]
    chosen = [i for i in mappable if _is_floating(flat[0][i])] or mappable
    batches = [tf.constant(np.stack([arrays[i] for arrays in flat])) for i in chosen]
    if not batches:
        raise Skipped("no inputs")
    shared = tf.nest.flatten(rows[0].sample.tensors())

    def one(elements: Sequence[Any]) -> Any:
        inputs = list(shared)
        for position, element in zip(chosen, elements, strict=True):
            inputs[position] = element
        return tf.nest.flatten(function(rows[0].sample.rebuilt(inputs)))

    return outcome(lambda: tf.vectorized_map(one, batches, warn=False))
