"""Numbers to integers and back, and products of integers.

Products take int8, uint8 or int16 and sum in int32, exactly as long as the sums fit.
Not for: choosing scales, training (training.py).
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def quantize(  # noqa: PLR0913, PLR0917 - as its callers write it
    x: Any,
    scale: Any,
    zero_point: Any = 0,
    dtype: Any = tf.int8,
    axis: Any = None,
    narrow: Any = False,
) -> Any:
    """The integers that stand for numbers: round(x / scale) + zero_point, kept in range.

    Args:
        x: floating, of any shape. A NaN gives any integer.
        scale: positive, of x's dtype: a number or a scalar; with `axis`, one for each slice.
        zero_point: a number or int32, of scale's shape.
        dtype: int8, uint8, int16 or int32.
        axis: the axis along which each slice has its own scale; None where the tensor has one.
        narrow: whether the lowest integer is left out, as weights of TFLite do.
    """
    low, high = limits(dtype, narrow)
    steps = tf.round(x / along(scale, x, axis))
    offset = tf.cast(along(zero_point, x, axis), x.dtype)
    return tf.cast(tf.clip_by_value(steps + offset, low, high), dtype)


def dequantize(
    q: Any, scale: Any, zero_point: Any = 0, dtype: Any = tf.float32, axis: Any = None
) -> Any:
    """The numbers that integers stand for: scale * (q - zero_point), in a floating dtype.

    Arguments as those of `quantize`.
    """
    offset = tf.cast(along(zero_point, q, axis), tf.int32)
    return tf.cast(tf.cast(q, tf.int32) - offset, dtype) * along(scale, q, axis)


def requantize(  # noqa: PLR0913, PLR0917 - as its callers write it
    accumulator: Any,
    factor: Any,
    zero_point: Any = 0,
    activation: Any = "NONE",
    scale: Any = 1.0,
    dtype: Any = tf.int8,
) -> Any:
    """Sums of products as the integers of the output.

    Args:
        accumulator: int32; its last axis has the channels.
        factor: float32, by what a step of the accumulator is multiplied (`scale_factor`): a scalar,
            or one for each channel.
        zero_point: of the output.
        activation: "NONE", "RELU", "RELU6" or "RELU_N1_TO_1", applied to the output.
        scale: of the output; the bounds of an activation depend on it.
        dtype: int8, uint8 or int16.
    """
    low, high = activation_range(activation, scale, zero_point, dtype)
    return tf.cast(tf.clip_by_value(rescale(accumulator, factor, zero_point), low, high), dtype)


def rescale(x: Any, factor: Any, zero_point: Any = 0) -> Any:
    """round(x * factor) + zero_point, in int32; `factor` is float32 and is broadcast to x."""
    return tf.cast(tf.round(tf.cast(x, tf.float32) * factor), tf.int32) + zero_point


def scale_factor(output_scale: Any, scales: Any) -> Any:
    """The factor from the products of two quantized tensors to their output's integers.

    Args:
        output_scale: of the output.
        scales: those of the two operands, of which one may have a scale for each channel.
    """
    first, second = scales
    return first * second / output_scale


def activation_range(activation: Any, scale: Any, zero_point: Any = 0, dtype: Any = tf.int8) -> Any:
    """The least and the largest integer that an activation lets through.

    Args:
        activation: "NONE", "RELU", "RELU6" or "RELU_N1_TO_1".
        scale: of the tensor: a number, or a scalar.
        zero_point: of the tensor.
        dtype: int8, uint8 or int16.

    Raises:
        ValueError: for another activation.
    """
    low, high = limits(dtype, False)
    if activation == "NONE":
        return low, high
    if activation == "RELU":
        return _clipped(0.0, scale, zero_point, low, high), high
    if activation == "RELU6":
        least = _clipped(0.0, scale, zero_point, low, high)
        return least, _clipped(6.0, scale, zero_point, low, high)
    if activation == "RELU_N1_TO_1":
        least = _clipped(-1.0, scale, zero_point, low, high)
        return least, _clipped(1.0, scale, zero_point, low, high)
    raise ValueError("the activation is none of NONE, RELU, RELU6, RELU_N1_TO_1")


def matmul(x: Any, w: Any, zero_point: Any = 0) -> Any:
    """The int32 product of quantized numbers with quantized weights, summed in int32.

    Args:
        x: [..., m, k] of 8- or 16-bit integers.
        w: [k, n] of the same, their zero point 0.
        zero_point: of x.

    Returns:
        int32 [..., m, n].
    """
    return tf.matmul(tf.cast(x, tf.int32) - zero_point, tf.cast(w, tf.int32))


def conv2d(x: Any, w: Any, zero_point: Any = 0, strides: Any = 1, padding: Any = "SAME") -> Any:
    """The int32 convolution of quantized numbers with quantized weights; padding is the number 0.

    Args:
        x: [batch, height, width, channels] of 8- or 16-bit integers.
        w: [height, width, channels, filters] of the same, their zero point 0.
        zero_point: of x.
        strides: as tf.nn.conv2d takes them.
        padding: "SAME" or "VALID".

    Returns:
        int32 [batch, rows, columns, filters].
    """
    shifted = tf.cast(x, tf.int32) - zero_point
    return tf.nn.conv2d(shifted, tf.cast(w, tf.int32), strides, padding)


def limits(dtype: Any, narrow: Any) -> Any:
    """The least and the largest integer of a dtype."""
    if dtype == tf.int8:
        return (-127 if narrow else -128), 127
    if dtype == tf.uint8:
        return (1 if narrow else 0), 255
    if dtype == tf.int16:
        return (-32767 if narrow else -32768), 32767
    if dtype == tf.int32:
        return -(2**31) + 128, 2**31 - 128  # the next numbers that float32 has
    raise ValueError("quantized numbers are int8, uint8, int16 or int32")


def along(values: Any, x: Any, axis: Any) -> Any:
    """One value for each slice of an axis of x, in a shape that x broadcasts it from."""
    if axis is None:
        return values
    rank = len(x.shape)
    return tf.reshape(values, [-1 if i == axis % rank else 1 for i in range(rank)])


def _clipped(number: Any, scale: Any, zero_point: Any, low: Any, high: Any) -> Any:
    """A number as an integer in range."""
    steps = tf.cast(tf.round(number / tf.cast(scale, tf.float32)), tf.int32) + zero_point
    return tf.clip_by_value(steps, low, high)
