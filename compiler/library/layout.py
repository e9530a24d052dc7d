"""Functions of tf that arrange: padding, splitting, repeating, rolling, blocks, and sizes.

tf.tile, tf.reverse, tf.broadcast_to and tf.bitcast are one op.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.dtypes import whole
from composite.compiler.library.names import public


@public("tf.rank")
def rank(input: Any, name: Any = None) -> Any:
    """How many axes there are, as a tensor of int32."""
    return tf.raw_ops.Rank(input=input, name=name)


@public("tf.size")
def size(input: Any, out_type: Any = None, name: Any = None) -> Any:
    """How many elements there are, as a tensor, of int32 by default."""
    return tf.raw_ops.Size(
        input=input, out_type=tf.int32 if out_type is None else out_type, name=name
    )


@public("tf.shape_n")
def shape_n(input: Any, out_type: Any = tf.int32, name: Any = None) -> Any:
    """The shapes of a list of tensors."""
    return tf.raw_ops.ShapeN(input=input, out_type=out_type, name=name)


@public("tf.ensure_shape")
def ensure_shape(x: Any, shape: Any, name: Any = None) -> Any:
    """The tensor, whose shape must fit: an error when the op runs if it does not."""
    return tf.raw_ops.EnsureShape(input=x, shape=shape, name=name)


@public("tf.broadcast_dynamic_shape")
def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Any:
    """The shape that two shapes, as tensors, broadcast to."""
    return tf.raw_ops.BroadcastArgs(s0=shape_x, s1=shape_y)


@public("tf.pad")
def pad(
    tensor: Any,
    paddings: Any,
    mode: Any = "CONSTANT",
    constant_values: Any = 0,
    name: Any = None,
) -> Any:
    """Put elements before and after each axis: a constant, or the tensor's own mirrored."""
    tensor = tf.convert_to_tensor(tensor)
    # `==`, unlike `in`, is decided where the body is compiled, and one branch alone is compiled.
    if mode == "CONSTANT" or mode == "constant":  # noqa: PLR1714
        if isinstance(constant_values, tf.Tensor) or constant_values != 0:
            return tf.raw_ops.PadV2(
                input=tensor, paddings=paddings, constant_values=constant_values, name=name
            )
        return tf.raw_ops.Pad(input=tensor, paddings=paddings, name=name)
    if mode == "REFLECT" or mode == "reflect":  # noqa: PLR1714
        return tf.raw_ops.MirrorPad(input=tensor, paddings=paddings, mode="REFLECT", name=name)
    if mode == "SYMMETRIC" or mode == "symmetric":  # noqa: PLR1714
        return tf.raw_ops.MirrorPad(input=tensor, paddings=paddings, mode="SYMMETRIC", name=name)
    raise ValueError(f"tf.pad: mode is CONSTANT, REFLECT or SYMMETRIC, not {mode}")


@public("tf.split")
def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: Any = None, name: Any = "split"
) -> Any:
    """Split into a number of equal parts along an axis, or into parts of the given sizes."""
    if isinstance(num_or_size_splits, tf.Tensor):
        return tf.raw_ops.SplitV(
            value=value,
            size_splits=num_or_size_splits,
            axis=axis,
            num_split=num_or_size_splits.shape[0] if num is None else num,
        )
    if isinstance(num_or_size_splits, (list, tuple)):
        return tf.raw_ops.SplitV(
            value=value,
            size_splits=num_or_size_splits,
            axis=axis,
            num_split=len(num_or_size_splits) if num is None else num,
        )
    return tf.raw_ops.Split(value=value, axis=axis, num_split=num_or_size_splits)


@public("tf.unstack")
def unstack(value: Any, num: Any = None, axis: Any = 0, name: Any = "unstack") -> Any:
    """The list of the slices along an axis."""
    value = tf.convert_to_tensor(value)
    return tf.raw_ops.Unpack(value=value, num=value.shape[axis] if num is None else num, axis=axis)


@public("tf.roll")
def roll(input: Any, shift: Any, axis: Any, name: Any = None) -> Any:
    """Move the elements along axes; what leaves at the end comes in at the front."""
    return tf.raw_ops.Roll(input=input, shift=shift, axis=axis, name=name)


@public("tf.repeat")
def repeat(input: Any, repeats: Any, axis: Any = None, name: Any = None) -> Any:
    """Repeat each slice along an axis, by default each element: as often as `repeats` says."""
    input = tf.convert_to_tensor(input)
    if axis is None:
        input = tf.reshape(input, [-1])
        axis = 0
    axis = axis + input.shape.rank if axis < 0 else axis
    dims = tf.shape(input)
    repeats = whole(repeats)
    if repeats.shape.rank > 1:
        raise ValueError(
            f"tf.repeat: repeats is a number or a vector, not of shape {repeats.shape}"
        )
    counts = tf.broadcast_to(tf.reshape(repeats, [-1]), [dims[axis]])
    numbers = tf.raw_ops.Range(start=0, limit=tf.reduce_sum(counts), delta=1)
    # The slice that stands at each place of the result: how many slices end before it.
    ends = tf.raw_ops.Cumsum(x=counts, axis=0)
    found = tf.raw_ops.UpperBound(
        sorted_inputs=tf.expand_dims(ends, 0), values=tf.expand_dims(numbers, 0)
    )
    return tf.raw_ops.GatherV2(params=input, indices=tf.squeeze(found, [0]), axis=axis)


@public("tf.nn.crelu")
def crelu(features: Any, axis: Any = -1, name: Any = None) -> Any:
    """Relu of the features, and beside it of their opposites: twice as many along the axis."""
    features = tf.convert_to_tensor(features)
    both = tf.concat([features, -features], axis)
    return tf.raw_ops.Relu(features=both, name=name)


@public("tf.nn.space_to_depth")
def space_to_depth(input: Any, block_size: Any, data_format: Any = "NHWC", name: Any = None) -> Any:
    """Turn blocks of images into channels."""
    return tf.raw_ops.SpaceToDepth(
        input=input, block_size=block_size, data_format=data_format, name=name
    )


@public("tf.nn.depth_to_space")
def depth_to_space(input: Any, block_size: Any, data_format: Any = "NHWC", name: Any = None) -> Any:
    """Turn channels of images into blocks."""
    return tf.raw_ops.DepthToSpace(
        input=input, block_size=block_size, data_format=data_format, name=name
    )


@public("tf.space_to_batch", "tf.nn.space_to_batch")
def space_to_batch(input: Any, block_shape: Any, paddings: Any, name: Any = None) -> Any:
    """Turn blocks of the spatial axes into elements of the batch."""
    return tf.raw_ops.SpaceToBatchND(
        input=input, block_shape=block_shape, paddings=paddings, name=name
    )


@public("tf.batch_to_space")
def batch_to_space(input: Any, block_shape: Any, crops: Any, name: Any = None) -> Any:
    """Turn elements of the batch into blocks of the spatial axes."""
    return tf.raw_ops.BatchToSpaceND(input=input, block_shape=block_shape, crops=crops, name=name)
