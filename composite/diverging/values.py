"""A graph run in two ways, value by value.

Its nodes are run one at a time, so that each value that either way computes can be compared. What
grappler, XLA or a kernel make of several nodes is not seen so.
Not for: kernels (kernel_cuts.py), other versions of a body (versions.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from composite.diverging.deviation import Array, Deviation, in_precision, of_kernel
from composite.diverging.report import Divergence, Found
from composite.diverging.subject import Subject
from composite.ops import functions
from composite.reference import evaluate
from composite.reference.evaluate import Step

EXPANSION = "expansion"
PRECISIONS = ("float64", "float32", "bfloat16", "float16")
_FLOATS = (tf.float64, tf.float32, tf.bfloat16, tf.float16)
SILENT = ("Const", "Placeholder", "Assert", "Print", "PrintV2")  # compute nothing

Key = tuple[tuple[str, ...], str, int]


class Way(NamedTuple):
    """How the nodes of a graph are run.

    Attributes:
        name: as it was asked for.
        dtype: of all floating numbers; None for those that they are declared with.
        device: where.
    """

    name: str
    dtype: tf.DType | None = None
    device: str = "CPU:0"

    def of(self, dtype: tf.DType) -> tf.DType:
        """What becomes of a dtype."""
        return self.dtype if self.dtype is not None and dtype in _FLOATS else dtype


def run(subject: Subject, way: Way, seen: Callable[[Step], None] | None = None) -> list[Any]:
    """The outputs of a graph; variables are copies, which are gone behind the run.

    ValueError where an op cannot be run so.
    """
    source = subject.source
    if way.dtype is not None:
        source = functions.in_dtype(source, [d for d in _FLOATS if d != way.dtype], way.dtype)
    copies = {
        id(x): tf.Variable(tf.cast(x, way.of(x.dtype)), trainable=False)
        for x in subject.given
        if isinstance(x, tf.Variable)
    }
    inputs = [copies[id(x)].handle if id(x) in copies else x for x in subject.given]
    try:
        return evaluate.evaluate(source, inputs, seen=seen, device=way.device)
    except tf.errors.OpError as error:
        raise ValueError(f"{subject.name} cannot be run as {way.name}: {error.message}") from error


def values_of(step: Step) -> Iterator[tuple[Key, Array]]:
    """The values that a node computed, those of calls and constants left out."""
    if step.is_call or step.node.op in SILENT:
        return
    for index, result in enumerate(step.results):
        if not functions.is_handle(result.dtype):
            yield (step.path, step.node.name, index), np.asarray(result.numpy())


def recorded(subject: Subject, way: Way) -> dict[Key, Array]:
    """All values of a run."""
    found: dict[Key, Array] = {}
    run(subject, way, lambda step: found.update(values_of(step)))
    return found


class _Diverged(Exception):  # noqa: N818 - ends a run
    def __init__(self, divergence: Divergence) -> None:
        super().__init__()
        self.divergence = divergence


def first(subject: Subject, ways: tuple[Way, Way], rtol: float | None) -> Found:
    """The first value that differs between two ways, in the order in which nodes run."""
    if all(way.dtype is None for way in ways):
        return _compared(subject, ways, _as_a_kernel(subject, ways, rtol))
    return _compared(subject, ways, lambda _, a, b: in_precision(a, b, rtol))


def _as_a_kernel(
    subject: Subject, ways: tuple[Way, Way], rtol: float | None
) -> Callable[[Key, Array, Array], Deviation]:
    if rtol is not None:
        return lambda _, a, b: in_precision(a, b, rtol)
    exact = recorded(subject, Way("float64", tf.float64, ways[0].device))
    return lambda key, a, b: of_kernel(a, b, exact.get(key, a))


def _compared(
    subject: Subject, ways: tuple[Way, Way], compare: Callable[[Key, Array, Array], Deviation]
) -> Found:
    wanted = recorded(subject, ways[0])
    moved: dict[int, float] = {}  # by how much the results of nodes differ, by the tensor
    kept: list[Any] = []  # so that no other tensor gets the address of one
    compared = 0

    def seen(step: Step) -> None:
        nonlocal compared
        inherited = max((moved.get(id(x), 0.0) for x in step.inputs), default=0.0)
        for key, value in values_of(step):
            if key not in wanted:  # what a random op draws in its own dtype, before it is cast
                continue
            compared += 1
            deviation = compare(key, wanted[key], value)
            if deviation.is_beyond:
                raise _Diverged(
                    Divergence.of(step, subject.place(step), value, deviation, inherited)
                )
            result = step.results[key[2]]
            moved[id(result)] = deviation.error
            kept.append(result)

    try:
        run(subject, ways[1], seen)
    except _Diverged as end:
        return Found(end.divergence, compared)
    return Found(None, compared)
