"""Pooling of tf.nn.

Sizes and strides are one number, one for each spatial axis, or one for each axis.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.names import public
from composite.compiler.library.nn.windows import channels_first, explicit, of_each_axis


@public("tf.nn.avg_pool")
def avg_pool(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: Any = None, name: Any = None
) -> Any:
    """Means over windows of sequences, images or volumes, by the rank of the input."""
    input = tf.convert_to_tensor(input)
    if input.shape.rank == 3:
        return avg_pool1d(input, ksize, strides, padding, data_format=data_format, name=name)
    if input.shape.rank == 4:
        return avg_pool2d(input, ksize, strides, padding, data_format=data_format, name=name)
    return avg_pool3d(input, ksize, strides, padding, data_format=data_format, name=name)


@public("tf.nn.max_pool")
def max_pool(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: Any = None, name: Any = None
) -> Any:
    """Largest elements over windows of sequences, images or volumes, by the rank of the input."""
    input = tf.convert_to_tensor(input)
    if input.shape.rank == 3:
        return max_pool1d(input, ksize, strides, padding, data_format=data_format, name=name)
    if input.shape.rank == 4:
        return max_pool2d(input, ksize, strides, padding, data_format=data_format, name=name)
    return max_pool3d(input, ksize, strides, padding, data_format=data_format, name=name)


@public("tf.nn.avg_pool1d")
def avg_pool1d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: Any = "NWC", name: Any = None
) -> Any:
    """Means over windows of sequences."""
    first = channels_first(data_format)
    position = 2 if first else 1
    pooled = tf.raw_ops.AvgPool(
        value=tf.raw_ops.ExpandDims(input=input, axis=position),
        ksize=[1] + of_each_axis(ksize, 1, first),
        strides=[1] + of_each_axis(strides, 1, first),
        padding=padding,
        data_format="NCHW" if first else "NHWC",
    )
    return tf.raw_ops.Squeeze(input=pooled, axis=[position], name=name)


@public("tf.nn.avg_pool2d")
def avg_pool2d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: Any = "NHWC", name: Any = None
) -> Any:
    """Means over windows of images."""
    first = channels_first(data_format)
    return tf.raw_ops.AvgPool(
        value=input,
        ksize=of_each_axis(ksize, 2, first),
        strides=of_each_axis(strides, 2, first),
        padding=padding,
        data_format="NHWC" if data_format is None else data_format,
        name=name,
    )


@public("tf.nn.avg_pool3d")
def avg_pool3d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: Any = "NDHWC", name: Any = None
) -> Any:
    """Means over windows of volumes."""
    first = channels_first(data_format)
    return tf.raw_ops.AvgPool3D(
        input=input,
        ksize=of_each_axis(ksize, 3, first),
        strides=of_each_axis(strides, 3, first),
        padding=padding,
        data_format="NDHWC" if data_format is None else data_format,
        name=name,
    )


@public("tf.nn.max_pool1d")
def max_pool1d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: Any = "NWC", name: Any = None
) -> Any:
    """Largest elements over windows of sequences."""
    first = channels_first(data_format)
    position = 2 if first else 1
    way, amounts = explicit(padding)
    pooled = tf.raw_ops.MaxPool(
        input=tf.raw_ops.ExpandDims(input=input, axis=position),
        ksize=[1] + of_each_axis(ksize, 1, first),
        strides=[1] + of_each_axis(strides, 1, first),
        padding=way,
        explicit_paddings=[0, 0] + amounts if way == "EXPLICIT" else [],
        data_format="NCHW" if first else "NHWC",
    )
    return tf.raw_ops.Squeeze(input=pooled, axis=[position], name=name)


@public("tf.nn.max_pool2d")
def max_pool2d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: Any = "NHWC", name: Any = None
) -> Any:
    """Largest elements over windows of images; padding may be a list of pairs for the axes."""
    first = channels_first(data_format)
    way, amounts = explicit(padding)
    return tf.raw_ops.MaxPool(
        input=input,
        ksize=of_each_axis(ksize, 2, first),
        strides=of_each_axis(strides, 2, first),
        padding=way,
        explicit_paddings=amounts,
        data_format="NHWC" if data_format is None else data_format,
        name=name,
    )


@public("tf.nn.max_pool3d")
def max_pool3d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: Any = "NDHWC", name: Any = None
) -> Any:
    """Largest elements over windows of volumes."""
    first = channels_first(data_format)
    return tf.raw_ops.MaxPool3D(
        input=input,
        ksize=of_each_axis(ksize, 3, first),
        strides=of_each_axis(strides, 3, first),
        padding=padding,
        data_format="NDHWC" if data_format is None else data_format,
        name=name,
    )


@public("tf.nn.max_pool_with_argmax")
def max_pool_with_argmax(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: Any = "NHWC",
    output_dtype: Any = tf.int64,
    include_batch_in_index: Any = False,
    name: Any = None,
) -> Any:
    """Largest elements over windows of images, and where they stand in the flat image."""
    if data_format != "NHWC":
        raise ValueError(f"tf.nn.max_pool_with_argmax: data_format is 'NHWC', not {data_format}")
    return tf.raw_ops.MaxPoolWithArgmax(
        input=input,
        ksize=of_each_axis(ksize, 2, False),
        strides=of_each_axis(strides, 2, False),
        padding=padding,
        Targmax=output_dtype,
        include_batch_in_index=include_batch_in_index,
        name=name,
    )
