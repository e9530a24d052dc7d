"""The layers of a convolutional network as ops: convolution with its activation, and pooling."""

import tensorflow as tf

from composite import Composite


def activated(x, act):
    """The activation that `act` names, of x."""
    if act == "RELU":
        return tf.nn.relu(x)
    if act == "RELU6":
        return tf.nn.relu6(x)
    if act == "TANH":
        return tf.tanh(x)
    return x


@Composite(
    "FusedConv2D",
    inputs=["input_: T", "filter_: T", "bias: T"],
    attrs=[
        "stride_w: int >= 1 = 1",
        "stride_h: int >= 1 = 1",
        "dilation_w: int >= 1 = 1",
        "dilation_h: int >= 1 = 1",
        'padding: {"SAME", "VALID"} = "SAME"',
        'act: {"", "RELU", "RELU6", "TANH"} = ""',
    ],
    derived_attrs=["T: {float, double, half, bfloat16}"],
    outputs=["o: T"],
)
def fused_conv2d(  # noqa: PLR0913, PLR0917 - the parameters are the op's
    input_, filter_, bias, stride_w, stride_h, dilation_w, dilation_h, padding, act
):
    """Convolution with bias and activation: act(input_ * filter_ + bias).

    Args:
        input_: [batch, height, width, channels].
        filter_: [rows, columns, channels, filters].
        bias: [filters].
        stride_w: step of the window along the width.
        stride_h: step of the window along the height.
        dilation_w: distance of the filter's columns on the image.
        dilation_h: distance of the filter's rows on the image.
        padding: whether zeros keep the size ("SAME") or the window stays inside ("VALID").
        act: the activation; "" is none.

    Returns:
        [batch, height, width, filters], height and width as padding and strides leave them.
    """
    convolved = tf.raw_ops.Conv2D(
        input=input_,
        filter=filter_,
        strides=[1, stride_h, stride_w, 1],
        dilations=[1, dilation_h, dilation_w, 1],
        padding=padding,
    )
    return activated(tf.nn.bias_add(convolved, bias), act)


@Composite(
    "FusedMaxPool2D",
    inputs=["input_: T"],
    attrs=[
        "filter_w: int >= 1",
        "filter_h: int >= 1",
        "stride_w: int >= 1 = 1",
        "stride_h: int >= 1 = 1",
        'padding: {"SAME", "VALID"} = "SAME"',
    ],
    derived_attrs=["T: {float, double, half, bfloat16, int32}"],
    outputs=["o: T"],
)
def fused_max_pool2d(  # noqa: PLR0913, PLR0917 - the parameters are the op's
    input_, filter_w, filter_h, stride_w, stride_h, padding
):
    """The largest entry of each window.

    Args:
        input_: [batch, height, width, channels].
        filter_w: columns of a window.
        filter_h: rows of a window.
        stride_w: step of the window along the width.
        stride_h: step of the window along the height.
        padding: whether windows may reach over the border ("SAME") or not ("VALID").

    Returns:
        [batch, height, width, channels], height and width as padding and strides leave them.
    """
    return tf.raw_ops.MaxPool(
        input=input_,
        ksize=[1, filter_h, filter_w, 1],
        strides=[1, stride_h, stride_w, 1],
        padding=padding,
    )
