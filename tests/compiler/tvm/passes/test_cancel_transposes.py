"""What is transposed, reduced and transposed back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm.ir.anchors import Reduce
from composite.compiler.tvm.ir.tensor import Transpose
from composite.compiler.tvm.ir.walk import topological
from composite.compiler.tvm.passes.cancel_transposes import cancel_transposes
from composite.compiler.tvm.read.reader import read_function
from tests.compiler.tvm.conftest import library_of

SHAPE = (3, 5, 4, 7)
ORDER, BACK = (0, 2, 3, 1), (0, 3, 1, 2)


def transposes(function: Callable[..., Any], *shapes: tuple[Any, ...]) -> tuple[int, int]:
    """How many there are before the pass and after it."""
    specs = [tf.TensorSpec([d if isinstance(d, int) else None for d in s]) for s in shapes]
    read = read_function(library_of(function, specs), shapes)
    before, after = (
        sum(isinstance(t.node, Transpose) for t in topological(f.outputs))
        for f in (read, cancel_transposes(read))
    )
    return before, after


def gradient(x: Any, dy: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.softmax(x, 1)
    return tape.gradient(y, x, dy)


def normalized(x: Any, scale: Any) -> Any:
    y = tf.transpose(x, ORDER)
    y = (y - tf.reduce_mean(y, [1, 3], keepdims=True)) * scale
    return tf.transpose(y + 2.0, BACK)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("softmax", [tf.nn.softmax, tf.nn.log_softmax])
def test_softmax_along_another_dimension(compiler: Any, softmax: Any, axis: int) -> None:
    assert transposes(lambda x: softmax(x, axis), SHAPE) == (2, 0)
    x = np.random.default_rng(0).uniform(-9, 9, SHAPE).astype(np.float32)
    compiler.compare(lambda x: softmax(x, axis), x, rtol=1e-5, atol=1e-6)


def test_any_sizes(compiler: Any) -> None:
    shape = ("s0", 5, "s1", "s1")
    assert transposes(lambda x: tf.nn.softmax(x, 1), shape) == (2, 0)
    x = np.random.default_rng(0).uniform(-9, 9, (2, 5, 6, 6)).astype(np.float32)
    compiler.compare(lambda x: tf.nn.softmax(x, 1), x, shapes=[shape], rtol=1e-5, atol=1e-6)


def test_its_gradient(compiler: Any) -> None:
    assert transposes(gradient, SHAPE, SHAPE) == (3, 0)
    x, dy = np.random.default_rng(0).uniform(-9, 9, (2, *SHAPE)).astype(np.float32)
    compiler.compare(gradient, x, dy, rtol=1e-5, atol=1e-6)


def test_reductions_over_several_and_what_broadcasts(compiler: Any) -> None:
    random = np.random.default_rng(0)
    assert transposes(normalized, SHAPE, (5,)) == (2, 1), "the scale is a view"
    x, scale = random.uniform(-1, 1, SHAPE), random.uniform(-1, 1, 5)
    compiler.compare(
        normalized, x.astype(np.float32), scale.astype(np.float32), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16, np.int32])
def test_dtypes(compiler: Any, dtype: Any) -> None:
    def scaled(x: Any) -> Any:
        y = tf.transpose(x, ORDER)
        return tf.transpose(y * tf.reduce_max(y, 2, keepdims=True) + tf.cast(3, x.dtype), BACK)

    assert transposes(scaled, SHAPE) == (2, 0)
    x = np.random.default_rng(0).integers(-9, 9, SHAPE).astype(dtype)
    compiler.compare(scaled, x)


def own_order(x: Any, y: Any) -> Any:
    return tf.transpose(tf.nn.softmax(tf.transpose(x, ORDER)) * y, BACK)


def test_an_operand_of_the_other_order_keeps_them() -> None:
    assert transposes(own_order, SHAPE, (3, 4, 7, 5)) == (2, 2)


def test_other_orders_stay() -> None:
    twice = transposes(lambda x: tf.transpose(tf.exp(tf.transpose(x, ORDER)), ORDER), SHAPE)
    assert twice == (2, 2)


def test_chains_may_be_longer_than_pythons_stack() -> None:
    def function(x: Any) -> Any:
        y = tf.transpose(x, ORDER)
        for _ in range(1500):
            y = y * 0.5
        return tf.transpose(y, BACK)

    assert transposes(function, SHAPE) == (2, 0)


def test_what_is_reduced_is_reduced_once() -> None:
    read = read_function(library_of(gradient, [tf.TensorSpec(SHAPE)] * 2), (SHAPE, SHAPE))
    count = [
        sum(isinstance(t.node, Reduce) for t in topological(f.outputs))
        for f in (read, cancel_transposes(read))
    ]
    assert count == [3, 3]
