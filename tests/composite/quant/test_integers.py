"""Quantized tensors, in numbers: as Python, and inlined into a body."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite import Composite, quant

X = np.array([[-9.0, -1.0, -0.25, 0.0], [0.25, 0.75, 1.0, 9.0]], np.float32)


@Composite(
    "QuantizedThrough",
    inputs=["x: float", "scales: float", "zeros: int32"],
    attrs=["axis: int = -1", "narrow: bool = False", "to: {int8, uint8, int16, int32} = DT_INT8"],
    outputs=["q: to", "y: float"],
)
def through(x, scales, zeros, axis, narrow, to):  # noqa: PLR0917 - positional in a body
    """There and back."""
    q = quant.quantize(x, scales, zeros, to, axis=axis, narrow=narrow)
    return q, quant.dequantize(q, scales, zeros, axis=axis)


@Composite(
    "QuantizedRange",
    inputs=["x: int32"],
    attrs=["activation: string", "scale: float", "zero: int"],
    outputs=["y: int8"],
)
def ranged(x, activation, scale, zero):
    """An accumulator, limited."""
    return quant.requantize(x, 0.5, zero, activation, scale)


@pytest.mark.parametrize("function", [through, through.python_function], ids=["op", "Python"])
def test_one_scale_for_each_slice(function: Any) -> None:
    scales, zeros = np.array([0.5, 0.25], np.float32), np.array([0, 3], np.int32)
    q, y = function(X, scales, zeros, axis=0, narrow=False, to=tf.int8)
    # -0.5 and 0.5 are ties, which go to the even one.
    np.testing.assert_array_equal(q, [[-18, -2, 0, 0], [4, 6, 7, 39]])
    np.testing.assert_array_equal(y, [[-9.0, -1.0, 0.0, 0.0], X[1]])


@pytest.mark.parametrize(
    ("to", "narrow", "ends"),
    [
        (tf.int8, False, (-128, 127)),
        (tf.int8, True, (-127, 127)),
        (tf.uint8, False, (0, 255)),
        (tf.uint8, True, (1, 255)),
        (tf.int16, True, (-32767, 32767)),
    ],
)
def test_numbers_out_of_range_are_kept_at_its_ends(to: Any, narrow: bool, ends: Any) -> None:
    x = tf.constant([-1e9, 1e9])
    q, _ = through(x, tf.ones([1]), tf.zeros([1], tf.int32), to=to, narrow=narrow)
    assert q.dtype == to
    assert tuple(q.numpy()) == ends


@pytest.mark.parametrize(
    ("activation", "wanted"),
    [
        ("NONE", [-128, -5, 5, 127]),
        ("RELU", [3, 3, 5, 127]),
        ("RELU6", [3, 3, 5, 15]),
        ("RELU_N1_TO_1", [1, 1, 5, 5]),
    ],
)
def test_activations_limit_the_integers(activation: str, wanted: list[int]) -> None:
    x = tf.constant([-1000, -16, 4, 1000])
    for function in (ranged, ranged.python_function):
        y = function(x, activation=activation, scale=0.5, zero=3)
        np.testing.assert_array_equal(y, wanted)
    low, high = quant.activation_range(activation, 0.5, 3)
    assert (int(low), int(high)) == (min(wanted), max(wanted))


def test_what_is_refused_says_so() -> None:
    with pytest.raises(ValueError, match="none of NONE, RELU, RELU6"):
        quant.activation_range("TANH", 0.5)
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="none of NONE, RELU"):
        ranged(tf.constant([1]), activation="TANH", scale=0.5, zero=3)
    with pytest.raises(ValueError, match="are int8, uint8, int16 or int32"):
        quant.quantize(X, 0.5, dtype=tf.int64)


def test_products_are_exact() -> None:
    random = np.random.default_rng(3)
    x = random.integers(-128, 128, (2, 3, 4096)).astype(np.int8)
    w = random.integers(-127, 128, (4096, 5)).astype(np.int8)
    wanted = (x.astype(np.int64) + 7) @ w.astype(np.int64)
    np.testing.assert_array_equal(quant.matmul(x, w, -7), wanted)
    image = random.integers(0, 256, (1, 5, 5, 2)).astype(np.uint8)
    kernel = random.integers(-127, 128, (3, 3, 2, 3)).astype(np.int8)
    numbers = tf.constant(image.astype(np.float64) - 128)
    wanted = tf.nn.conv2d(numbers, kernel.astype(np.float64), 2, "SAME")
    np.testing.assert_array_equal(quant.conv2d(image, kernel, 128, 2), wanted)


def test_factors() -> None:
    assert quant.scale_factor(0.5, [0.25, 4.0]) == 2.0
    np.testing.assert_array_equal(quant.rescale([3, 5, -5], 0.5, 1), [3, 3, -1])
