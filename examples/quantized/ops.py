"""A dense layer and a convolution on int8, as TFLite runs them: int32 sums, scales per channel."""

import tensorflow as tf

from composite import Composite, quant

ACTIVATION = 'activation: {"NONE", "RELU", "RELU6", "RELU_N1_TO_1"} = "NONE"'
# Scales and zero points of the input and the output; weights have a scale for each channel, and 0.
QUANTIZED = ["x_scale: float", "x_zero: int", "y_scale: float", "y_zero: int"]


@Composite(
    "Int8Dense",
    inputs=["x: int8", "w: int8", "w_scale: float", "bias: int32"],
    attrs=[*QUANTIZED, ACTIVATION],
    outputs=["y: int8"],
)
def int8_dense(  # noqa: PLR0913, PLR0917 - inputs and attributes are positional in a body
    x, w, w_scale, bias, x_scale, x_zero, y_scale, y_zero, activation
):
    """A dense layer.

    Args:
        x: [..., m, k].
        w: [k, n], in steps of `w_scale`.
        w_scale: [n].
        bias: [n], in steps of x_scale * w_scale.
        x_scale: what a step of x is, as a number.
        x_zero: the integer of x that stands for 0.
        y_scale: what a step of the result is.
        y_zero: the integer of the result that stands for 0.
        activation: of the result.

    Returns:
        [..., m, n].
    """
    total = quant.matmul(x, w, x_zero) + bias
    factor = quant.scale_factor(y_scale, [x_scale, w_scale])
    return quant.requantize(total, factor, y_zero, activation, y_scale)


@Composite(
    "Int8Conv2D",
    inputs=["x: int8", "w: int8", "w_scale: float", "bias: int32"],
    attrs=[*QUANTIZED, ACTIVATION, "stride: int = 1", 'padding: {"SAME", "VALID"} = "SAME"'],
    outputs=["y: int8"],
)
def int8_conv2d(  # noqa: PLR0913, PLR0917 - inputs and attributes are positional in a body
    x, w, w_scale, bias, x_scale, x_zero, y_scale, y_zero, activation, stride, padding
):
    """A convolution.

    Args:
        x: [batch, height, width, channels].
        w: [height, width, channels, filters].
        w_scale: [filters].
        bias: [filters], in steps of x_scale * w_scale.
        x_scale: what a step of x is, as a number.
        x_zero: the integer of x that stands for 0.
        y_scale: what a step of the result is.
        y_zero: the integer of the result that stands for 0.
        activation: of the result.
        stride: of the windows, both ways.
        padding: at the edges, of the number 0.

    Returns:
        [batch, rows, columns, filters].
    """
    total = quant.conv2d(x, w, x_zero, stride, padding) + bias
    factor = quant.scale_factor(y_scale, [x_scale, w_scale])
    return quant.requantize(total, factor, y_zero, activation, y_scale)


@Composite(
    "QuantizationAwareDense",
    inputs=["x: float", "w: float", "bias: float"],
    attrs=["x_scale: float", "x_zero: int"],
    outputs=["y: float"],
)
def quantization_aware_dense(x, w, bias, x_scale, x_zero):
    """The dense layer in training: what int8 leaves of x and w, with gradients.

    Args:
        x: [m, k].
        w: [k, n], whose columns each have the scale that fits.
        bias: [n].
        x_scale: what a step of x is, as a number.
        x_zero: the integer of x that stands for 0.

    Returns:
        [m, n].
    """
    w_scale, _ = quant.parameters(tf.reduce_min(w, 0), tf.reduce_max(w, 0), tf.int8, symmetric=True)
    small = quant.fake_quant(w, tf.stop_gradient(w_scale), axis=1, narrow=True)
    return quant.fake_quant(x, x_scale, x_zero) @ small + bias
