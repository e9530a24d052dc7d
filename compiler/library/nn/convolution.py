"""Convolutions of tf.nn.

Strides and dilations are one number, one for each spatial axis, or one for each axis.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.names import public
from composite.compiler.library.nn.windows import channels_first, explicit, of_each_axis


@public("tf.nn.conv1d")
def conv1d(
    input: Any,
    filters: Any,
    stride: Any,
    padding: Any,
    data_format: Any = "NWC",
    dilations: Any = None,
    name: Any = None,
) -> Any:
    """Convolve sequences, of any batch axes: as images of height 1."""
    if data_format not in (None, "NWC", "NHWC", "NCW", "NCHW"):
        raise ValueError(f"tf.nn.conv1d: data_format is 'NWC' or 'NCW', not {data_format}")
    first = channels_first(data_format)
    position = -2 if first else -3
    images = tf.raw_ops.ExpandDims(input=input, axis=position)
    product = tf.raw_ops.Conv2D(
        input=_one_batch(images, 4),
        filter=tf.raw_ops.ExpandDims(input=filters, axis=0),
        strides=[1] + of_each_axis(stride, 1, first),
        padding=padding,
        data_format="NCHW" if first else "NHWC",
        dilations=[1] + of_each_axis(dilations, 1, first),
    )
    return tf.raw_ops.Squeeze(input=_batches(product, images, 4), axis=[position], name=name)


def _one_batch(x: Any, rank: Any) -> Any:
    """Return a tensor with one batch axis for all that it has; `rank` is what it has then."""
    if x.shape.rank <= rank:
        return x
    return tf.reshape(x, tf.concat([[-1], tf.shape(x)[1 - rank :]], 0))


def _batches(made: Any, x: Any, rank: Any) -> Any:
    """Return what was made of _one_batch(x, rank) with the batch axes of x."""
    if x.shape.rank <= rank:
        return made
    return tf.reshape(made, tf.concat([tf.shape(x)[: 1 - rank], tf.shape(made)[1:]], 0))


@public("tf.nn.conv2d")
def conv2d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: Any = "NHWC",
    dilations: Any = None,
    name: Any = None,
) -> Any:
    """Convolve images, of any batch axes; padding may be a list of pairs, one for each axis."""
    first = channels_first(data_format)
    way, amounts = explicit(padding)
    input = tf.convert_to_tensor(input)
    product = tf.raw_ops.Conv2D(
        input=_one_batch(input, 4),
        filter=filters,
        strides=of_each_axis(strides, 2, first),
        padding=way,
        explicit_paddings=amounts,
        data_format="NHWC" if data_format is None else data_format,
        dilations=of_each_axis(dilations, 2, first),
        name=name,
    )
    return _batches(product, input, 4)


@public("tf.nn.conv3d")
def conv3d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: Any = "NDHWC",
    dilations: Any = None,
    name: Any = None,
) -> Any:
    """Convolve volumes, of any batch axes."""
    input = tf.convert_to_tensor(input)
    product = tf.raw_ops.Conv3D(
        input=_one_batch(input, 5),
        filter=filters,
        strides=strides,
        padding=padding,
        data_format=data_format,
        dilations=[1, 1, 1, 1, 1] if dilations is None else dilations,
        name=name,
    )
    return _batches(product, input, 5)


@public("tf.nn.conv1d_transpose")
def conv1d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: Any = "NWC",
    dilations: Any = None,
    name: Any = None,
) -> Any:
    """The gradient of conv1d with respect to its input."""
    if data_format not in (None, "NWC", "NCW"):
        raise ValueError(
            f"tf.nn.conv1d_transpose: data_format is 'NWC' or 'NCW', not {data_format}"
        )
    first = channels_first(data_format)
    position = 2 if first else 1
    shape = tf.convert_to_tensor(output_shape)
    product = tf.raw_ops.Conv2DBackpropInput(
        input_sizes=tf.concat([shape[:position], [1], shape[position:]], 0),
        filter=tf.raw_ops.ExpandDims(input=filters, axis=0),
        out_backprop=tf.raw_ops.ExpandDims(input=input, axis=position),
        strides=[1] + of_each_axis(strides, 1, first),
        padding=padding,
        data_format="NCHW" if first else "NHWC",
        dilations=[1] + of_each_axis(dilations, 1, first),
    )
    return tf.raw_ops.Squeeze(input=product, axis=[position], name=name)


@public("tf.nn.conv2d_transpose")
def conv2d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: Any = "NHWC",
    dilations: Any = None,
    name: Any = None,
) -> Any:
    """The gradient of conv2d with respect to its input."""
    first = channels_first(data_format)
    way, amounts = explicit(padding)
    return tf.raw_ops.Conv2DBackpropInput(
        input_sizes=output_shape,
        filter=filters,
        out_backprop=input,
        strides=of_each_axis(strides, 2, first),
        padding=way,
        explicit_paddings=amounts,
        data_format="NHWC" if data_format is None else data_format,
        dilations=of_each_axis(dilations, 2, first),
        name=name,
    )


@public("tf.nn.conv3d_transpose")
def conv3d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: Any = "NDHWC",
    dilations: Any = None,
    name: Any = None,
) -> Any:
    """The gradient of conv3d with respect to its input."""
    first = channels_first(data_format)
    return tf.raw_ops.Conv3DBackpropInputV2(
        input_sizes=output_shape,
        filter=filters,
        out_backprop=input,
        strides=of_each_axis(strides, 3, first),
        padding=padding,
        data_format="NDHWC" if data_format is None else data_format,
        dilations=of_each_axis(dilations, 3, first),
        name=name,
    )


@public("tf.nn.depthwise_conv2d")
def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: Any = None,
    dilations: Any = None,
    name: Any = None,
) -> Any:
    """Convolve each channel of images with filters of its own."""
    first = channels_first(data_format)
    if dilations is not None and not first:
        return _dilated(input, filter, strides, padding, dilations)
    way, amounts = explicit(padding)
    return tf.raw_ops.DepthwiseConv2dNative(
        input=input,
        filter=filter,
        strides=strides,
        padding=way,
        explicit_paddings=amounts,
        data_format="NHWC" if data_format is None else data_format,
        dilations=of_each_axis(dilations, 2, first),
        name=name,
    )


def _dilated(input: Any, filter: Any, strides: Any, padding: Any, rates: Any) -> Any:
    """Convolve what blocks of the image have at each place, which is what dilation means."""
    input = tf.convert_to_tensor(input)
    filter = tf.convert_to_tensor(filter)
    pads: Any = []
    crops: Any = []
    for axis in (0, 1):
        reach = (filter.shape[axis] - 1) * rates[axis]
        before = reach // 2 if padding == "SAME" else 0
        after = reach - before if padding == "SAME" else 0
        more = -(input.shape[axis + 1] + before + after) % rates[axis]
        pads = pads + [[before, after + more]]
        crops = crops + [[0, more]]
    blocks = tf.raw_ops.SpaceToBatchND(input=input, block_shape=rates, paddings=pads)
    convolved = tf.raw_ops.DepthwiseConv2dNative(
        input=blocks, filter=filter, strides=strides, padding="VALID"
    )
    return tf.raw_ops.BatchToSpaceND(input=convolved, block_shape=rates, crops=crops)


@public("tf.nn.separable_conv2d")
def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    data_format: Any = None,
    dilations: Any = None,
    name: Any = None,
) -> Any:
    """Convolve each channel of images, then mix the channels."""
    pointwise_filter = tf.convert_to_tensor(pointwise_filter)
    if not pointwise_filter.shape[:2].is_compatible_with([1, 1]):
        raise ValueError(
            f"tf.nn.separable_conv2d: the pointwise filter is [1, 1, ...], not "
            f"{pointwise_filter.shape}"
        )
    depthwise = depthwise_conv2d(
        input, depthwise_filter, strides, padding, data_format=data_format, dilations=dilations
    )
    return conv2d(depthwise, pointwise_filter, 1, "VALID", data_format=data_format, name=name)


@public("tf.nn.dilation2d")
def dilation2d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: Any,
    dilations: Any,
    name: Any = None,
) -> Any:
    """The largest sum of image and filter in each window."""
    if data_format != "NHWC":
        raise ValueError(f"tf.nn.dilation2d: data_format is 'NHWC', not {data_format}")
    return tf.raw_ops.Dilation2D(
        input=input, filter=filters, strides=strides, rates=dilations, padding=padding, name=name
    )


@public("tf.nn.erosion2d")
def erosion2d(
    value: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: Any,
    dilations: Any,
    name: Any = None,
) -> Any:
    """The smallest difference of image and reversed filter in each window."""
    if data_format != "NHWC":
        raise ValueError(f"tf.nn.erosion2d: data_format is 'NHWC', not {data_format}")
    grown = tf.raw_ops.Dilation2D(
        input=tf.raw_ops.Neg(x=value),
        filter=tf.raw_ops.ReverseV2(tensor=filters, axis=[0, 1]),
        strides=strides,
        rates=dilations,
        padding=padding,
    )
    return tf.raw_ops.Neg(x=grown, name=name)
