"""Taking parts of tensors, and putting parts into them.

tf.scatter_nd, tensor_scatter_nd_add and its like, tf.dynamic_partition and tf.reverse are one op.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.names import public


@public("tf.gather")
def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: Any = 0,
    name: Any = None,
) -> Any:
    """Slices along an axis, by default the one after the batch dims."""
    return tf.raw_ops.GatherV2(
        params=params,
        indices=indices,
        axis=batch_dims if axis is None else axis,
        batch_dims=batch_dims,
        name=name,
    )


@public("tf.gather_nd")
def gather_nd(
    params: Any,
    indices: Any,
    batch_dims: Any = 0,
    name: Any = None,
    bad_indices_policy: Any = "",
) -> Any:
    """Slices at positions, each a vector along the last axis of the indices."""
    if batch_dims < 0:
        raise ValueError("tf.gather_nd: batch_dims cannot be negative")
    params = tf.convert_to_tensor(params)
    indices = tf.convert_to_tensor(indices)
    if batch_dims > 0:
        batch = params.shape[:batch_dims]
        if batch_dims >= indices.shape.rank or batch_dims >= params.shape.rank:
            raise ValueError("tf.gather_nd: batch_dims must be below the ranks of both tensors")
        if not batch.is_compatible_with(indices.shape[:batch_dims]):
            raise ValueError(
                f"tf.gather_nd: params {params.shape} and indices {indices.shape} must have one "
                f"shape in their first {batch_dims} dims"
            )
        indices = tf.concat([_batch_positions(indices, batch_dims), indices], axis=-1)
    return tf.raw_ops.GatherNd(
        params=params, indices=indices, bad_indices_policy=bad_indices_policy, name=name
    )


def _batch_positions(indices: Any, batch_dims: Any) -> Any:
    """Return for each position where it is in the batch."""
    shape = tf.concat([tf.shape(indices)[:-1], [1]], axis=0)
    positions: Any = []
    for axis in range(batch_dims):
        count = tf.cast(tf.shape(indices)[axis], indices.dtype)
        numbers = tf.raw_ops.Range(
            start=tf.cast(0, indices.dtype), limit=count, delta=tf.cast(1, indices.dtype)
        )
        ones = [1] * (indices.shape.rank - axis - 1)
        column = tf.reshape(numbers, [1] * axis + [-1] + ones)
        positions = positions + [tf.broadcast_to(column, shape)]
    return tf.concat(positions, axis=-1)


@public("tf.slice")
def slice_(input_: Any, begin: Any, size: Any, name: Any = None) -> Any:
    """A part of a size that begins at a position; a size of -1 is all the rest."""
    return tf.raw_ops.Slice(input=input_, begin=begin, size=size, name=name)


@public("tf.strided_slice")
def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: Any = 0,
    end_mask: Any = 0,
    ellipsis_mask: Any = 0,
    new_axis_mask: Any = 0,
    shrink_axis_mask: Any = 0,
    var: Any = None,
    name: Any = None,
) -> Any:
    """A part from begin to end, in strides; the masks say which bounds do not count."""
    if var is not None:
        raise ValueError("tf.strided_slice: `var` is not supported in the body of a composite")
    return tf.raw_ops.StridedSlice(
        input=input_,
        begin=begin,
        end=end,
        strides=tf.ones_like(begin) if strides is None else strides,
        begin_mask=begin_mask,
        end_mask=end_mask,
        ellipsis_mask=ellipsis_mask,
        new_axis_mask=new_axis_mask,
        shrink_axis_mask=shrink_axis_mask,
        name=name,
    )


@public("tf.boolean_mask")
def boolean_mask(tensor: Any, mask: Any, axis: Any = None, name: Any = "boolean_mask") -> Any:
    """The elements, or the slices from an axis on, where the mask is true."""
    tensor = tf.convert_to_tensor(tensor)
    mask = tf.convert_to_tensor(mask)
    first = 0 if axis is None else axis
    dims = tf.shape(tensor)
    last = first + mask.shape.rank
    if mask.shape.rank == 0:
        raise ValueError("tf.boolean_mask: the mask cannot be a scalar")
    if not mask.shape.is_compatible_with(tensor.shape[first:last]):
        raise ValueError(
            f"tf.boolean_mask: the mask {mask.shape} does not have the shape of {tensor.shape} "
            f"from axis {first} on"
        )
    size = tf.reduce_prod(dims[first:last], [0])
    flat = tf.reshape(tensor, tf.concat([dims[:first], [size], dims[last:]], 0))
    chosen = tf.squeeze(tf.raw_ops.Where(condition=tf.reshape(mask, [-1])), axis=[1])
    return tf.raw_ops.GatherV2(params=flat, indices=chosen, axis=first)


@public("tf.tensor_scatter_nd_update")
def tensor_scatter_nd_update(tensor: Any, indices: Any, updates: Any, name: Any = None) -> Any:
    """The tensor with updates put at positions."""
    return tf.raw_ops.TensorScatterUpdate(
        tensor=tensor, indices=indices, updates=updates, name=name
    )


@public("tf.reverse_sequence")
def reverse_sequence(
    input: Any, seq_lengths: Any, seq_axis: Any = None, batch_axis: Any = None, name: Any = None
) -> Any:
    """Reverse the first seq_lengths[i] elements of each row i of the batch."""
    return tf.raw_ops.ReverseSequence(
        input=input,
        seq_lengths=seq_lengths,
        seq_dim=seq_axis,
        batch_dim=0 if batch_axis is None else batch_axis,
        name=name,
    )


@public("tf.nn.embedding_lookup")
def embedding_lookup(params: Any, ids: Any, max_norm: Any = None, name: Any = None) -> Any:
    """The rows of one table of embeddings."""
    if max_norm is not None:
        raise ValueError("tf.nn.embedding_lookup: clip by tf.clip_by_norm in a body")
    if isinstance(params, (list, tuple)):
        raise ValueError("tf.nn.embedding_lookup takes one table in a body: join them")
    return tf.raw_ops.Identity(input=tf.raw_ops.GatherV2(params=params, indices=ids, axis=0))
