"""Results of two functions on the same values of variables, whoever writes to these meanwhile.

A function is compared with itself without regions in calls one after the other. Another thread may
train the variables in between: then results differ that would not otherwise. So what differs is
called again, with copies of the variables in their places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from composite.trials.results import Deviation, deviation, flat


def moved(
    original: Any, other: Any, given: Sequence[Any], rtol: float | None, before: Deviation
) -> Deviation:
    """How far the results of a tf.function are from the original's: `before` if that is small.

    Both functions are called by this thread alone.
    """
    if before.is_small:
        return before
    functions = [one.get_concrete_function(*given) for one in (original, other)]
    variables = {id(variable.handle): variable for one in functions for variable in one.variables}
    copies = {handle: tf.Variable(one, trainable=False) for handle, one in variables.items()}
    results = []
    for function, concrete in zip((original, other), functions, strict=True):
        with _on(concrete, copies):
            results.append(flat(function(*given)))
    return deviation(results[1], results[0], rtol)


@contextmanager
def _on(concrete: Any, copies: Mapping[int, tf.Variable]) -> Iterator[None]:
    """Has a trace read copies, by the handles of the variables."""
    captures = list(concrete.captured_inputs)
    concrete.set_external_captures(
        [copies[id(one)].handle if id(one) in copies else one for one in captures]
    )
    try:
        yield
    finally:
        concrete.set_external_captures(captures)
