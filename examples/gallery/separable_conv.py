"""Depthwise separable convolution: Howard et al. 2017, https://arxiv.org/abs/1704.04861."""

import tensorflow as tf

from composite import Composite
from examples.gallery.precision import FLOATS


@Composite(
    "SeparableConv2d",
    inputs=["x: T", "depthwise: T", "pointwise: T", "bias: T"],
    attrs=["stride: int >= 1 = 1", "padding: {'SAME', 'VALID'} = 'SAME'"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def separable_conv2d(x, depthwise, pointwise, bias, stride, padding):  # noqa: PLR0913, PLR0917 - the op's
    """A convolution of each channel, one across the channels of each pixel, bias and ReLU6.

    Args:
        x: [batch, height, width, channels].
        depthwise: [filter height, filter width, channels, multiplier].
        pointwise: [1, 1, channels * multiplier, m].
        bias: [m].
        stride: of both axes.
        padding: as TensorFlow has it.

    Returns:
        [batch, new height, new width, m].
    """
    strides = [1, stride, stride, 1]
    y = tf.nn.separable_conv2d(x, depthwise, pointwise, strides, padding)
    return tf.nn.relu6(tf.nn.bias_add(y, bias))
