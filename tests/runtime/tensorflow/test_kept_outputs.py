"""Reductions of functions read the output of a composite that they are given, whichever that is.

TensorFlow's optimizer reads the first output of a node that gives several to such functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from tests.runtime import kernel_support as k


@composite.Composite(
    "KeptOutputs",
    inputs=["x: T"],
    attrs=["N: int >= 1"],
    derived_attrs=["T: {float}"],
    outputs=["y: T", "rest: N * T"],
)
def kept_outputs(x: Any, N: int) -> Any:
    return tf.raw_ops.Neg(x=x), [tf.raw_ops.Mul(x=x, y=x), tf.raw_ops.AddV2(x=x, y=x)]


@pytest.fixture(autouse=True, scope="module")
def _nodes_stay(no_compiler: None) -> Iterator[None]:
    """As where a kernel may still come: a node is no call of its expansion."""
    k.request("composite_set_kernel_ops", k.node("", "", ops=["Neg", "Mul", "AddV2"]))
    yield
    k.request("composite_set_kernel_ops", k.node("", "", ops=[]))


def reduced(x: Any) -> Any:
    first, (square, twice) = kept_outputs(x, N=2)
    return (
        tf.argmax(tf.acos(square)),
        tf.argmin(tf.identity(tf.acos(tf.identity(square)))),
        tf.reduce_max(tf.sigmoid(twice)),
        tf.argmax(tf.acos(first)),
        twice,
    )


def in_branch(x: Any) -> Any:
    return tf.cond(x[0] < 5.0, lambda: reduced(x), lambda: reduced(-x))


def in_loop(x: Any) -> Any:
    before = tf.nest.map_structure(tf.zeros_like, reduced(x))

    def body(i: Any, sums: Any) -> Any:
        return i + 1, tf.nest.map_structure(tf.add, sums, reduced(x))

    return tf.while_loop(lambda i, _: i < 2, body, (0, before))[1]


def in_branch_of_loop(x: Any) -> Any:
    before = tf.nest.map_structure(tf.zeros_like, reduced(x))

    def body(i: Any, _: Any) -> Any:
        return i + 1, in_branch(x)

    return tf.while_loop(lambda i, _: i < 2, body, (0, before))[1]


def called(x: Any) -> Any:
    return tf.function(reduced)(x)


def of_dataset(x: Any) -> Any:
    return next(iter(tf.data.Dataset.from_tensors(x).map(reduced)))


def of_session(x: Any) -> Any:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return session.run(reduced(tf.constant(x)))


LINE = np.random.default_rng(0).uniform(-0.5, 0.5, 50).astype(np.float32)
TRACED: list[Callable[[Any], Any]] = [reduced, in_branch, in_loop, in_branch_of_loop, called]


@pytest.mark.parametrize("backend", ["auto", "tf"])
@pytest.mark.parametrize("place", [*TRACED, of_dataset, of_session])
def test_of_another_output(place: Callable[[Any], Any], backend: str) -> None:
    given = LINE if place is of_session else tf.constant(LINE)
    with composite.options(backend=backend):
        found = (tf.function(place) if place in TRACED else place)(given)
    times = 2 if place is in_loop else 1
    for y, wanted in zip(found, reduced(tf.constant(LINE)), strict=True):
        np.testing.assert_allclose(y, times * wanted, rtol=1e-6)
