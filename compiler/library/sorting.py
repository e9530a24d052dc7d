"""Sorting, ranking and searching."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.dtypes import INTEGER
from composite.compiler.library.names import public
from composite.compiler.library.shaping import exchange_with_last


@public("tf.argmax", "tf.math.argmax")
def argmax(input: Any, axis: Any = None, output_type: Any = tf.int64, name: Any = None) -> Any:
    """The index of the largest element along an axis, by default the first; the first of equals."""
    return tf.raw_ops.ArgMax(
        input=input, dimension=0 if axis is None else axis, output_type=output_type, name=name
    )


@public("tf.argmin", "tf.math.argmin")
def argmin(input: Any, axis: Any = None, output_type: Any = tf.int64, name: Any = None) -> Any:
    """The index of the smallest element along an axis, by default the first; first of equals."""
    return tf.raw_ops.ArgMin(
        input=input, dimension=0 if axis is None else axis, output_type=output_type, name=name
    )


@public("tf.math.top_k", "tf.nn.top_k")
def top_k(
    input: Any, k: Any = 1, sorted: Any = True, index_type: Any = tf.int32, name: Any = None
) -> Any:
    """The k largest elements along the last axis, and their indices."""
    return tf.raw_ops.TopKV2(input=input, k=k, sorted=sorted, index_type=index_type, name=name)


@public("tf.math.in_top_k", "tf.nn.in_top_k")
def in_top_k(targets: Any, predictions: Any, k: Any, name: Any = None) -> Any:
    """Whether each target is one of the k largest predictions of its row."""
    return tf.raw_ops.InTopKV2(predictions=predictions, targets=targets, k=k, name=name)


@public("tf.sort")
def sort(values: Any, axis: Any = -1, direction: Any = "ASCENDING", name: Any = None) -> Any:
    """The elements along an axis in order."""
    values = tf.convert_to_tensor(values)
    if direction == "DESCENDING":
        ordered, _ = _descending(values, axis)
        return ordered
    if direction != "ASCENDING":
        raise ValueError(f"tf.sort: direction is ASCENDING or DESCENDING, not {direction}")
    ordered, _ = _descending(_turned_over(values), axis)
    return _turned_over(ordered)


@public("tf.argsort")
def argsort(
    values: Any,
    axis: Any = -1,
    direction: Any = "ASCENDING",
    stable: Any = False,
    name: Any = None,
) -> Any:
    """The indices that put the elements along an axis in order; it is always stable."""
    values = tf.convert_to_tensor(values)
    if direction == "DESCENDING":
        _, indices = _descending(values, axis)
        return indices
    if direction != "ASCENDING":
        raise ValueError(f"tf.argsort: direction is ASCENDING or DESCENDING, not {direction}")
    _, indices = _descending(_turned_over(values), axis)
    return indices


def _turned_over(values: Any) -> Any:
    """Return values in the opposite order: its own inverse."""
    if values.dtype in INTEGER:
        return tf.raw_ops.Invert(x=values)
    return -values


def _descending(values: Any, axis: Any) -> Any:
    """Return the sorted elements and their indices."""
    if axis == -1 or axis == values.shape.rank - 1:
        ordered, indices = tf.raw_ops.TopKV2(input=values, k=tf.shape(values)[-1])
        return ordered, indices
    perm = exchange_with_last(axis, values.shape.rank)
    swapped = tf.transpose(values, perm)
    ordered, indices = tf.raw_ops.TopKV2(input=swapped, k=tf.shape(swapped)[-1])
    return tf.transpose(ordered, perm), tf.transpose(indices, perm)


@public("tf.searchsorted")
def searchsorted(
    sorted_sequence: Any,
    values: Any,
    side: Any = "left",
    out_type: Any = tf.int32,
    name: Any = None,
) -> Any:
    """Where each value would have to be put into the sorted last axis."""
    if side not in ("left", "right"):
        raise ValueError(f"tf.searchsorted: side is 'left' or 'right', not {side}")
    sorted_sequence = tf.convert_to_tensor(sorted_sequence)
    values = tf.convert_to_tensor(values)
    rows = tf.reshape(sorted_sequence, [-1, sorted_sequence.shape[-1]])
    wanted = tf.reshape(values, [-1, values.shape[-1]])
    if side == "right":
        found = tf.raw_ops.UpperBound(
            sorted_inputs=rows, values=wanted, out_type=out_type, name=name
        )
    else:
        found = tf.raw_ops.LowerBound(
            sorted_inputs=rows, values=wanted, out_type=out_type, name=name
        )
    return tf.reshape(found, tf.shape(values))


@public("tf.unique")
def unique(x: Any, out_idx: Any = tf.int32, name: Any = None) -> Any:
    """The different elements of a vector, and for each element the index of its like."""
    return tf.raw_ops.Unique(x=x, out_idx=out_idx, name=name)


@public("tf.unique_with_counts")
def unique_with_counts(x: Any, out_idx: Any = tf.int32, name: Any = None) -> Any:
    """The different elements of a vector, the index of each one's like, and how many there are."""
    return tf.raw_ops.UniqueWithCounts(x=x, out_idx=out_idx, name=name)
