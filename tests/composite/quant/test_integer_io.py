"""Functions on integers: what they are given stands for numbers, and what they give."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from composite import Composite, quant

EVERY = np.arange(-128, 128).astype(np.int8)


@Composite("QuantizedAgain", inputs=["x: float"], attrs=["s: float", "z: int"], outputs=["q: int8"])
def again(x, s, z):
    """What a function begins with that works on integers."""
    return quant.quantize(x, s, z)


@pytest.mark.parametrize(("scale", "zero"), [(0.1, 3), (1 / 127, 0), (7.3e-5, -128), (41.7, 127)])
def test_integers_that_are_quantized_again_are_the_same(scale: float, zero: int) -> None:
    how = {"scale": np.float32(scale), "zero_point": zero}
    served = quant.integer_io(lambda x: again(x, s=scale, z=zero), [how], [None])
    np.testing.assert_array_equal(tf.function(served)(EVERY), EVERY)
    through = quant.integer_io(lambda x: x, [how], [how])
    np.testing.assert_array_equal(through(EVERY), EVERY)


def test_several_users_results_and_scales() -> None:
    """An input may be read twice, and what stays as it is may stand beside."""
    scales = np.array([0.5, 0.25], np.float32)
    zeros = np.array([0, 4], np.int32)
    served = quant.integer_io(
        lambda x, y, n: (x + x * y, y, n + 1),
        [
            {"scale": scales, "zero_point": zeros, "axis": 1},
            {"scale": 0.5, "dtype": tf.int16},
            None,
        ],
        [{"scale": 0.25, "dtype": tf.uint8, "zero_point": 128}, None, None],
    )
    x = np.array([[2, 8], [-2, 4]], np.int8)  # [[1, 1], [-1, 0]]
    y = np.array([[2, -6], [4, 100]], np.int16)  # [[1, -3], [2, 50]]
    first, second, third = tf.function(served)(x, y, 5)
    np.testing.assert_array_equal(first, [[136, 120], [116, 128]])
    assert first.dtype == tf.uint8
    np.testing.assert_array_equal(second, [[1, -3], [2, 50]])
    assert int(third) == 6


def test_what_is_refused() -> None:
    served = quant.integer_io(lambda x: x, [{"scale": 0.1}], [None])
    with pytest.raises(TypeError, match="an argument is int16, and int8 was stated"):
        served(np.zeros(3, np.int16))
    with pytest.raises(ValueError, match="there are 2 arguments, and 1 were stated"):
        served(EVERY, EVERY)
    with pytest.raises(ValueError, match="there are 1 results, and 0 were stated"):
        quant.integer_io(lambda x: x, [None], [])(EVERY)


def test_a_factor_is_of_two_operands() -> None:
    with pytest.raises(ValueError, match="too many values to unpack"):
        quant.scale_factor(0.5, [0.25, 4.0, 1.0])
    channels = tf.constant([0.5, 2.0])
    np.testing.assert_array_equal(quant.scale_factor(0.5, [0.25, channels]), [0.25, 1.0])
