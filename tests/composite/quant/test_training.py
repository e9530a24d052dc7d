"""Quantization in training: the numbers of integers, the gradient of a clip."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from composite import quant


def test_fake_quant_is_there_and_back() -> None:
    random = np.random.default_rng(1)
    x = tf.constant(random.normal(0, 3, (5, 7)).astype(np.float32))
    scales, zeros = tf.constant(random.uniform(0.01, 0.1, 7).astype(np.float32)), tf.range(-3, 4)
    for narrow in (False, True):
        q = quant.quantize(x, scales, zeros, axis=1, narrow=narrow)
        wanted = quant.dequantize(q, scales, zeros, axis=1)
        with tf.GradientTape() as tape:
            tape.watch([x, scales])
            y = quant.fake_quant(x, scales, zeros, axis=1, narrow=narrow)
        np.testing.assert_array_equal(y, wanted)
        slope, of_scale = tape.gradient(y, [x, scales])
        steps = np.round(x / scales) + zeros
        np.testing.assert_array_equal(slope, (steps >= -128 + narrow) & (steps <= 127))
        assert of_scale is None


def test_fake_quant_is_tensorflows() -> None:
    x = tf.constant(np.linspace(-1.5, 1.5, 101, dtype=np.float32))
    wanted = tf.quantization.fake_quant_with_min_max_args(x, -1.28, 1.27)
    np.testing.assert_allclose(quant.fake_quant(x, 0.01), wanted, atol=1e-6)


@pytest.mark.parametrize(
    ("low", "high", "symmetric", "scale", "zero"),
    [
        (-1.0, 1.55, False, 0.01, -28),
        (0.5, 2.55, False, 0.01, -128),
        (-2.55, -1.0, False, 0.01, 127),
        (-1.0, 1.27, True, 0.01, 0),
        (0.0, 0.0, False, 1.0, -128),
        (0.0, 0.0, True, 1.0, 0),
    ],
)
def test_parameters(low: float, high: float, symmetric: bool, scale: float, zero: int) -> None:
    found, offset = quant.parameters(low, high, symmetric=symmetric)
    assert float(found) == pytest.approx(scale, rel=1e-6)
    assert int(offset) == zero


def test_parameters_of_each_slice() -> None:
    scales, zeros = quant.parameters([-1.27, -2.54], [0.0, 2.54], symmetric=True)
    np.testing.assert_allclose(scales, [0.01, 0.02], rtol=1e-6)
    np.testing.assert_array_equal(zeros, [0, 0])
