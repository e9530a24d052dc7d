"""What tells numbers apart sees 16-bit floats as TensorFlow rounds them, not those of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm.ir.tensor import Pointwise
from composite.compiler.tvm.ir.walk import topological
from composite.compiler.tvm.passes.rounding import round_operands
from composite.compiler.tvm.read.reader import read_function
from tests.compiler.tvm.conftest import library_of

raw = tf.raw_ops


def _image(x: Any) -> Any:
    return x[None, :, :, None]


JUMPS: dict[str, Callable[[Any, Any], Any]] = {
    "greater": lambda x, y: x * 0.1 > y * 0.1,
    "equal": lambda x, y: tf.equal(x * 0.1 + y, y),
    "not equal": lambda x, y: tf.not_equal(x - y * 0.25, x),
    "floor": lambda x, y: tf.floor(x * y + 0.5),
    "ceil": lambda x, y: tf.math.ceil(x * y),
    "round": lambda x, y: tf.round(x * 3.7 - y),
    "sign": lambda x, y: tf.sign(x * 1.1 + x - x * 2.1),
    "floor division": lambda x, _: x // 0.1,
    "floor division of both": lambda x, y: x // y,
    "remainder": lambda x, y: (x * 1.7) % (y * y + 0.1),
    "cast to an integer": lambda x, y: tf.cast(x * y * 3.0, tf.int32),
    "cast to another float": lambda x, y: tf.cast(x * y, tf.float32) > tf.cast(y * x, tf.float32),
    "argmax": lambda x, y: tf.argmax(x * 0.001 + y, 1),
    "argmin": lambda x, y: tf.argmin(x + y * 64.0, 0, tf.int32),
    "finite": lambda x, y: tf.math.is_finite(x * 60000.0 + y),
    "where": lambda x, y: tf.where(x * y > y * 0.3, x, y),
    "gradient of relu": lambda x, y: raw.ReluGrad(gradients=y, features=x * 1.1 - x - x * 0.1),
    "gradient of relu6": lambda x, y: raw.Relu6Grad(gradients=y, features=x * 1.1 - y * 0.7),
    "gradient of leaky relu": lambda x, y: raw.LeakyReluGrad(
        gradients=y, features=x * 1.1 - x - x * 0.1, alpha=0.25
    ),
    "gradient of a maximum over windows": lambda x, y: tf.cast(
        raw.MaxPoolGrad(
            orig_input=_image(x * 0.001 + y),
            orig_output=tf.nn.max_pool2d(_image(x * 0.001 + y), 2, 2, "VALID"),
            grad=tf.ones([1, 20, 25, 1], x.dtype),
            ksize=[1, 2, 2, 1],
            strides=[1, 2, 2, 1],
            padding="VALID",
        ),
        tf.float32,
    ),
    "division by almost nothing": lambda x, y: tf.math.divide_no_nan(y, x * 1.1 - x - x * 0.1),
    "square root": lambda x, y: tf.sqrt(x * 1.1 - x - x * 0.1),
    "one over a square root": lambda x, y: tf.math.rsqrt(y + y * 0.1 - y * 1.1),
    "logarithm": lambda x, y: tf.math.log(x * 1.1 - x - x * 0.1),
    "logarithm of 1 and a number": lambda x, y: tf.math.log1p(x * 1.1 - x - x * 0.1 - 1.0),
    "power": lambda x, y: (x * 1.1 - x - x * 0.1) ** 0.75,
    "of a sum that keeps its dimension": lambda x, y: tf.reduce_sum(x * y, 1, True) > y * 4.0,
    "of a sum": lambda x, y: tf.reduce_sum(tf.round(x * 4.0), 1) + tf.reduce_max(y, 1) > 3.0,
    "of a view": lambda x, y: tf.transpose(x * 0.3)[1:] > tf.transpose(y * 0.3)[:-1],
}


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("function", JUMPS.values(), ids=JUMPS)
def test_the_result_is_tensorflows(compiler: Any, function: Any, dtype: Any) -> None:
    random = np.random.default_rng(0)
    x, y = (random.choice(np.arange(-8, 8, 0.125), (40, 50)) for _ in range(2))
    compiler.compare(function, x.astype(dtype), np.where(y == 0, 1, y).astype(dtype))


def test_what_a_loop_carries_is_rounded(compiler: Any) -> None:
    def function(x: Any) -> Any:
        total, count = tf.zeros_like(x), tf.zeros([20], tf.int32)
        for _ in tf.range(5):
            total = total + x * 0.1
            count = count + tf.cast(total > 0.3, tf.int32)
        return count

    x = np.random.default_rng(0).uniform(0, 2, 20).astype(np.float16)
    compiler.compare(tf.autograph.to_graph(function), x)


def _after_it(x: Any) -> Any:
    total = tf.zeros_like(x)
    for _ in tf.range(5):
        total = total * 0.9 + x
    return tf.cast(total * 16.0, tf.int32)


def _in_a_later_trip(x: Any) -> Any:
    total, before, count = tf.zeros_like(x), tf.zeros_like(x), tf.zeros([2000], tf.int32)
    for _ in tf.range(5):
        count = count + tf.cast(before * 16.0, tf.int32)
        before = total
        total = total * 0.9 + x
    return count


def _in_another_loop(x: Any) -> Any:
    total, totals = tf.zeros_like(x), tf.TensorArray(x.dtype, 5, element_shape=[2000])
    for i in tf.range(5):
        total = total * 0.9 + x
        totals = totals.write(i, total)
    all_totals, count = totals.stack(), tf.zeros([2000], tf.int32)
    scale = tf.ones_like(x)
    for i in tf.range(5):
        scale = scale * 0.5
        count = count + tf.cast(all_totals[i] * scale * 16.0, tf.int32)
    return count


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("function", [_after_it, _in_a_later_trip, _in_another_loop])
def test_what_is_told_apart_outside_of_a_trip_is_rounded_in_it(
    compiler: Any, function: Any, dtype: Any
) -> None:
    x = np.random.default_rng(0).uniform(0, 2, 2000).astype(dtype)
    compiler.compare(tf.autograph.to_graph(function), x)


def rounded(function: Any, dtype: Any) -> list[str]:
    library = library_of(function, [tf.TensorSpec([4, 4], dtype)])
    made = round_operands(read_function(library, [(4, 4)]))
    nodes = [t.node for t in topological(made.outputs) if isinstance(t.node, Pointwise)]
    return [n.operands[0].node.title for n in nodes if n.op == "Rounded"]


def test_nothing_else_is_rounded() -> None:
    assert rounded(lambda x: tf.exp(x * 0.1) + 1.0, tf.float16) == []
    assert rounded(lambda x: x * 0.1 > 1.0, tf.float32) == []
    assert rounded(lambda x: (x > 1.0, x * 0.1), tf.float16) == []


def test_what_jumps_is_told_by_the_table() -> None:
    for gradient in (raw.ReluGrad, raw.Relu6Grad, raw.LeakyReluGrad):
        assert rounded(lambda x, g=gradient: g(gradients=x, features=x * 0.1), tf.half) == ["Mul"]
    assert rounded(lambda x: raw.SeluGrad(gradients=x, outputs=x * 0.1), tf.half) == ["Mul"]
    assert rounded(lambda x: raw.EluGrad(gradients=x, outputs=x * 0.1), tf.half) == []


def test_roots_of_what_is_never_negative_are_not_rounded() -> None:
    def normalized(x: Any) -> Any:
        return x * tf.math.rsqrt(tf.reduce_mean(tf.square(x - 1.0), -1, keepdims=True) + 1e-6)

    assert rounded(normalized, tf.half) == []
    assert rounded(lambda x: tf.sqrt(x - x * 0.1), tf.half) == ["Mul", "Sub"]
    assert rounded(lambda x: (x - x * 0.1) ** 2.0, tf.half) == []


def test_a_trip_knows_what_is_never_negative_outside_of_it() -> None:
    def function(x: Any) -> Any:
        size, total = tf.square(x * 0.1), tf.zeros_like(x)
        for _ in tf.range(3):
            total = total * 0.5 - tf.sqrt(size + tf.square(total))
        return total

    assert rounded(tf.autograph.to_graph(function), tf.half) == []


def test_a_test_for_infinities_rounds_what_it_reads_alone() -> None:
    def logsumexp(x: Any) -> Any:
        return tf.reduce_logsumexp(x * 0.1 + 1.0, 1, keepdims=True)

    assert rounded(logsumexp, tf.bfloat16) == ["Reshape"]  # of the maximum
    assert rounded(logsumexp, tf.half) == ["Mul", "AddV2"]  # either may overflow
    assert rounded(lambda x: tf.math.is_nan(x / (x - x * 0.1)), tf.bfloat16) == [
        "Mul", "Sub", "RealDiv",
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", [tf.half, tf.bfloat16])
def test_a_function_that_was_rounded_stays_what_it_is(dtype: Any) -> None:
    def function(x: Any) -> Any:
        return tf.reduce_logsumexp(x * 0.1 + 1.0, 1), tf.floor(x * 0.1), tf.sqrt(x - x * 0.1)

    once = round_operands(
        read_function(library_of(function, [tf.TensorSpec([4, 4], dtype)]), [(4, 4)])
    )
    assert round_operands(once) is once


def test_all_ops_on_the_way_are_rounded_once() -> None:
    def function(x: Any) -> Any:
        y = tf.exp(x * 0.1)
        return y > 1.0, tf.floor(y), y + 1.0

    assert rounded(function, tf.bfloat16) == ["Mul", "Exp"]
