"""Quantization in training: numbers as integers would keep them, with the gradient of a clip."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.quant.integers import along, limits


def fake_quant(  # noqa: PLR0913, PLR0917 - as its callers write it
    x: Any,
    scale: Any,
    zero_point: Any = 0,
    dtype: Any = tf.int8,
    axis: Any = None,
    narrow: Any = False,
) -> Any:
    """The numbers that are left of x once it is quantized: dequantize(quantize(x)), in x's dtype.

    The gradient goes straight through the rounding, to x alone: it is 1 where x rounds to an
    integer in range, and 0 elsewhere. Arguments as those of `quantize`.
    """
    low, high = limits(dtype, narrow)
    step = along(scale, x, axis)
    offset = tf.cast(along(zero_point, x, axis), x.dtype)
    rounded = (tf.clip_by_value(tf.round(x / step) + offset, low, high) - offset) * step
    least, most = (low - 0.5 - offset) * step, (high + 0.5 - offset) * step
    clipped = tf.clip_by_value(x, tf.stop_gradient(least), tf.stop_gradient(most))
    # What `clipped` has of the value is taken off again, exactly; its gradient stays.
    return tf.stop_gradient(rounded) + (clipped - tf.stop_gradient(clipped))


def parameters(low: Any, high: Any, dtype: Any = tf.int8, symmetric: Any = False) -> Any:
    """A scale and a zero point with which numbers in a range fit, and 0 is exact.

    Args:
        low: the least number, a scalar or one for each slice; a positive one counts as 0.
        high: the largest number, of low's shape; a negative one counts as 0.
        dtype: int8, uint8 or int16.
        symmetric: whether the zero point is 0 and the lowest integer is left out, as for weights.

    Returns:
        The scale, float32, and the zero point, int32. The scale of an empty range is 1.
    """
    least, most = limits(dtype, symmetric)
    low = tf.minimum(tf.cast(low, tf.float32), 0.0)
    high = tf.maximum(tf.cast(high, tf.float32), 0.0)
    if symmetric:
        scale = tf.maximum(-low, high) / float(most)
        scale = tf.where(scale > 0.0, scale, tf.ones_like(scale))
        return scale, tf.zeros_like(scale, tf.int32)
    scale = (high - low) / float(most - least)
    scale = tf.where(scale > 0.0, scale, tf.ones_like(scale))
    return scale, tf.cast(tf.round(float(least) - low / scale), tf.int32)
