"""The softmax that is written out, beside TensorFlow: rows with NaN and infinities too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm.ir.anchors import Reduce
from composite.compiler.tvm.ir.graph import Function
from composite.compiler.tvm.ir.tensor import Pointwise, Tensor
from composite.compiler.tvm.ir.walk import topological
from composite.compiler.tvm.lower.reduction import MAXIMUM
from composite.compiler.tvm.passes.merge_equal import merge_equal
from composite.compiler.tvm.passes.softmax import recognize_softmax
from composite.compiler.tvm.read.reader import read_function
from tests.compiler.tvm.conftest import library_of

INF, NAN = np.inf, np.nan
X = np.random.default_rng(0).normal(0, 9, (40, 40)).astype(np.float32)
Z = X[10:].reshape(3, 10, 40).copy()
for row, numbers in enumerate(
    ([NAN], [INF], [-INF], [INF, NAN], [-INF, NAN], [INF, -INF], [1e30], [-1e30])
):
    X[row, : len(numbers)] = numbers
X[8], X[9], X[10] = -INF, INF, NAN


def shifted(x: Any, axis: Any = -1) -> Any:
    return x - tf.stop_gradient(tf.reduce_max(x, axis, keepdims=True))


def softmax(x: Any, axis: Any = -1) -> Any:
    e = tf.exp(shifted(x, axis))
    return e / tf.reduce_sum(e, axis, keepdims=True)


def log_softmax(x: Any) -> Any:
    z = shifted(x)
    return z - tf.math.log(tf.reduce_sum(tf.exp(z), -1, keepdims=True))


def with_largest(x: Any) -> Any:
    return softmax(x), tf.reduce_max(x, -1, keepdims=True)


def with_exponentials(x: Any) -> Any:
    e = tf.exp(shifted(x))
    return e, e / tf.reduce_sum(e, -1, keepdims=True)


def compared(x: Any) -> Any:
    return softmax(x), tf.where(shifted(x) > -1.0, x, 0.0)


def sums_of_columns(x: Any) -> Any:
    return tf.exp(shifted(x)) / tf.reduce_sum(tf.exp(shifted(x)), 0, keepdims=True)


def sums_along_columns(x: Any) -> Any:
    e = tf.exp(shifted(x))
    return e / tf.reduce_sum(e, -1)  # the sum of row j for column j: there are as many


def sums_of_others(x: Any) -> Any:
    others = tf.exp(shifted(tf.reverse(x, [0])))
    return tf.exp(shifted(x)) / tf.reduce_sum(others, -1, keepdims=True)


def larger_of_others(x: Any) -> Any:
    return tf.exp(x - tf.reduce_max(tf.reverse(x, [0]), -1, keepdims=True))


def made(function: Callable[..., Any], x: np.ndarray = X) -> list[Tensor]:
    """All tensors after the pass."""
    read: Function = read_function(library_of(function, [x]), [x.shape])
    return topological(recognize_softmax(merge_equal(read)).outputs)


def ops(tensors: list[Tensor]) -> list[tuple[str, int]]:
    return [(t.node.op, t.node.cost) for t in tensors if isinstance(t.node, Pointwise)]


def keeps_nan(function: Callable[..., Any]) -> bool:
    reductions = [t.node for t in made(function) if isinstance(t.node, Reduce)]
    (ours,) = (one.combine for one in reductions if one.combine.name == MAXIMUM.name)
    return ours is MAXIMUM


def test_softmax_multiplies_cheap_exponentials() -> None:
    assert ops(made(softmax)) == [("Sub", 1), ("Exp", 14), ("Reciprocal", 6), ("Mul", 1)]
    assert ("Exp", 18) in ops(made(larger_of_others))


@pytest.mark.parametrize("function", [softmax, log_softmax])
def test_a_maximum_keeps_no_nan_that_the_sum_has(function: Callable[..., Any]) -> None:
    assert not keeps_nan(function)


VISIBLE = (with_largest, with_exponentials, compared, sums_along_columns, sums_of_columns)


@pytest.mark.parametrize("function", VISIBLE)
def test_a_maximum_keeps_nan_where_that_is_seen(function: Callable[..., Any]) -> None:
    assert keeps_nan(function)


def test_results_are_tensorflows(compiler: Any) -> None:
    bodies = (softmax, log_softmax, sums_along_columns, sums_of_others)

    def all_of_them(*rows: Any) -> Any:
        return [body(x) for body, x in zip(bodies, rows, strict=True)]

    compiler.compare(all_of_them, *([X] * len(bodies)), rtol=3e-6, atol=2e-6)


def test_other_axes_dtypes_and_gradients_are_tensorflows(compiler: Any) -> None:
    def results(x: Any, double: Any, narrow: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(log_softmax(x) * Z)
        return tape.gradient(y, x), softmax(double, [0, 2]), softmax(narrow, 1)

    dtypes = (np.float32, np.float64, tf.bfloat16.as_numpy_dtype)
    compiler.compare(results, *(Z.astype(t) for t in dtypes), rtol=2e-5, atol=4e-3)
