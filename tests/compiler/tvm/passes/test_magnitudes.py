"""Sums that absorb an operand, and multiples that overflow, are in kernels what TensorFlow has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from tests.compiler.tvm.passes.test_rounding import rounded


def _softmax(x: Any) -> Any:
    power = tf.exp(x - tf.reduce_max(x, -1, keepdims=True))
    return power / tf.reduce_sum(power, -1, keepdims=True)


# Of scores x and a mask y of zeros and -65504.
MASKED: dict[str, Callable[[Any, Any], Any]] = {
    "softmax": lambda x, y: tf.nn.softmax(x + y),
    "softmax of scaled scores": lambda x, y: tf.nn.softmax(x * 0.125 + y),
    "softmax, written out": lambda x, y: _softmax(x + y),
    "softmax of a difference": lambda x, y: tf.nn.softmax(x - (-1.0 * y)),
    "softmax of two masks": lambda x, y: tf.nn.softmax(x + y + y),
    "softmax of a mask and a bias": lambda x, y: tf.nn.softmax(y + tf.sin(x) + x),
    "logarithm of a softmax": lambda x, y: tf.nn.log_softmax(x + y),
    "softmax of a list": lambda x, y: tf.nn.softmax(tf.add_n([x, y, x])),
    "attention": lambda x, y: tf.matmul(tf.nn.softmax(tf.matmul(x, x, transpose_b=True) + y), x),
    "in both": lambda x, y: (x + y) - tf.maximum(y, x),
}


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("function", MASKED.values(), ids=MASKED)
def test_sums_absorb_what_tensorflows_do(compiler: Any, function: Any, dtype: Any) -> None:
    """Rows that are masked as a whole show it: what is left of them is not what was masked."""
    x = np.random.default_rng(0).normal(size=(24, 24)).astype(dtype)
    y = np.zeros((24, 24), dtype)
    y[::3], y[1::3, :11] = -65504, -65504
    rtol = 2.0 * float(ml_dtypes.finfo(dtype).eps)
    compiler.compare(function, x, y, rtol=rtol, atol=rtol)


def test_products_with_a_number_overflow_as_tensorflows(compiler: Any) -> None:
    x = np.random.default_rng(0).normal(size=(12, 24)).astype(np.float16)
    x[1], x[2] = x[1] * 0.1, 0.0
    compiler.compare(lambda x: tf.nn.softmax(x * 60000.0), x, rtol=2e-3)
    compiler.compare(lambda x: tf.tanh(x * 60000.0 * 0.0001), x, rtol=2e-3)


def test_sums_that_nothing_is_taken_from_are_not_rounded() -> None:
    def normalized(x: Any) -> Any:
        rest = x - tf.reduce_mean(x, -1, keepdims=True)
        return rest * tf.math.rsqrt(tf.reduce_mean(tf.square(rest), -1, keepdims=True) + 1e-6) + x

    for dtype in (tf.half, tf.bfloat16):
        assert rounded(normalized, dtype) == []
        assert rounded(lambda x: tf.nn.gelu(x, True), dtype) == []
        assert rounded(lambda x: (x + x * x) * 0.5, dtype) == []
        assert rounded(lambda x: tf.nn.softmax(x + x * x), dtype) == ["AddV2"]
        assert rounded(lambda x: tf.nn.softmax(x * 0.5 + 1.0), dtype) == []


def test_what_cannot_overflow_is_not_rounded() -> None:
    assert rounded(lambda x: tf.exp(tf.tanh(x) * 60000.0), tf.half) == []
    assert rounded(lambda x: tf.exp(x * 3.0), tf.half) == ["Mul"]
    assert rounded(lambda x: tf.exp(x * 3.0), tf.bfloat16) == []
    assert rounded(lambda x: x * 3.0, tf.half) == []  # it is rounded where it is stored
