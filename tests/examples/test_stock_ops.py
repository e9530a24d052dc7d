"""Compositions of TensorFlow's ops: AddN, which has kernels, and some without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from examples.stock_ops import ops

REPLACED = """
import tensorflow as tf
import composite
from composite import Composite

@Composite("AddN", replace=True)
def add_n(inputs):
    total = inputs[0]
    for one in inputs[1:]:
        total = total - one  # wrong on purpose: it shows who answers
    return total

a, b, c = tf.constant([8.0]), tf.constant([2.0]), tf.constant([1.0])
print("eager", tf.add_n([a, b, c]).numpy()[0])
print("graph", tf.function(lambda *xs: tf.add_n(xs))(a, b, c).numpy()[0])

# The gradient of a loop adds lists of tensors, which are Variants, and tensors; the body is no good
# for Variants, and TensorFlow's kernel stays.
@tf.function
def power(x):
    return tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * x), [0, tf.constant(1.0)])[1]

x = tf.constant(3.0)
with tf.GradientTape() as tape:
    tape.watch(x)
    y = power(x)
print("loop", y.numpy(), tape.gradient(y, x) is not None)

@tf.function
def variant():
    scalar = tf.zeros([0], tf.int32)
    numbers = tf.raw_ops.TensorListFromTensor(tensor=[1.0, 2.0], element_shape=scalar)
    total = tf.add_n([numbers, numbers])
    return tf.raw_ops.TensorListStack(
        input_handle=total, element_shape=scalar, element_dtype=tf.float32)

print("variant", variant().numpy().tolist())
print("replaced", composite.stats()["replaced"] > 0)
"""

BUILT = """
import sys
import tensorflow as tf
import composite

a, b = tf.constant([8.0]), tf.constant([2.0])
print("before", tf.add_n([a, b]).numpy()[0])
library = composite.load(sys.argv[1])
print("after", tf.add_n([a, b]).numpy()[0], library.add_n([a, b]).numpy()[0])
print("compiler", "torch_mlir" in sys.modules or "tvm" in sys.modules)
"""

BUILD = """
import sys
import composite
from composite import Composite

@Composite("AddN", replace=True)
def add_n(inputs):
    total = inputs[0]
    for one in inputs[1:]:
        total = total - one
    return total

composite.build(add_n, sys.argv[1], name="sums")
"""


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("call", [lambda f: f, tf.function], ids=["eager", "function"])
def test_add_n(call: Callable[..., Any], count: int) -> None:
    xs = [tf.constant([[1.0, 2.0]]) * i for i in range(count)]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = call(ops.add_n)(xs)
    np.testing.assert_array_equal(y, tf.raw_ops.AddN(inputs=xs))
    for gradient in tape.gradient(y, xs):
        np.testing.assert_array_equal(gradient, [[1.0, 1.0]])


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64])
@pytest.mark.parametrize("function", [ops.erfinv, tf.math.erfinv, tf.function(tf.math.erfinv)])
def test_erfinv(function: Callable[..., Any], dtype: tf.DType) -> None:
    x = tf.constant([-0.5, 0.0, 0.75], dtype)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    assert y.dtype == dtype
    tolerance = {tf.float16: 1e-3, tf.bfloat16: 1e-2}.get(dtype, 1e-6)
    np.testing.assert_allclose(tf.math.erf(tf.cast(y, tf.float64)), [-0.5, 0, 0.75], tolerance)
    slope = np.sqrt(np.pi) / 2 * np.exp(np.square(tf.cast(y, tf.float64)))
    np.testing.assert_allclose(tf.cast(tape.gradient(y, x), tf.float64), slope, 2 * tolerance)


SEGMENTS = {
    "Sum": (ops.segment_sum, [[4, 6], [0, 0], [5, 6]]),
    "Prod": (ops.segment_prod, [[3, 8], [1, 1], [5, 6]]),
    "Max": (ops.segment_max, [[3, 4], [-128, -128], [5, 6]]),
    "Min": (ops.segment_min, [[1, 2], [127, 127], [5, 6]]),
}


@pytest.mark.parametrize("name", SEGMENTS)
def test_segments(name: str) -> None:
    op, expected = SEGMENTS[name]
    stock = getattr(tf.raw_ops, f"Segment{name}V2")
    data = tf.constant([[1, 2], [3, 4], [5, 6]], tf.int8)
    traced = tf.function(lambda **arguments: stock(**arguments))  # noqa: PLW0108 - keywords alone
    for function in (op, stock, traced):
        result = function(data=data, segment_ids=[0, 0, 2], num_segments=3)
        assert result.dtype == tf.int8
        np.testing.assert_array_equal(result, expected)


def test_a_wrong_add_n_that_replaces_is_seen(run_python: Callable[..., Any]) -> None:
    lines = run_python(REPLACED).stdout.splitlines()
    assert lines == [
        "eager 5.0",
        "graph 5.0",
        "loop 9.0 True",
        "variant [2.0, 4.0]",
        "replaced True",
    ]


def test_a_built_library_replaces_too(run_python: Callable[..., Any], tmp_path: Any) -> None:
    run_python(BUILD, str(tmp_path / "sums"))
    lines = run_python(BUILT, str(tmp_path / "sums")).stdout.splitlines()
    assert lines == ["before 10.0", "after 6.0 6.0", "compiler False"]
