"""Segments of tf.math: means of what belongs together.

tf.math.segment_sum, unsorted_segment_max and their like are one op.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.names import public


@public("tf.math.unsorted_segment_mean")
def unsorted_segment_mean(
    data: Any,
    segment_ids: Any,
    num_segments: Any,
    name: Any = None,
) -> Any:
    """The mean of the rows of each segment."""
    data = tf.convert_to_tensor(data)
    segment_ids = tf.convert_to_tensor(segment_ids)
    total = tf.raw_ops.UnsortedSegmentSum(
        data=data, segment_ids=segment_ids, num_segments=num_segments
    )
    return total / _sizes(data, segment_ids, num_segments)


@public("tf.math.unsorted_segment_sqrt_n")
def unsorted_segment_sqrt_n(
    data: Any,
    segment_ids: Any,
    num_segments: Any,
    name: Any = None,
) -> Any:
    """The sum of the rows of each segment, over the square root of how many there are."""
    data = tf.convert_to_tensor(data)
    segment_ids = tf.convert_to_tensor(segment_ids)
    total = tf.raw_ops.UnsortedSegmentSum(
        data=data, segment_ids=segment_ids, num_segments=num_segments
    )
    return total / tf.raw_ops.Sqrt(x=_sizes(data, segment_ids, num_segments))


def _sizes(data: Any, segment_ids: Any, num_segments: Any) -> Any:
    """Return how many rows each segment has, at least 1, in a shape that broadcasts."""
    ones = tf.ones(tf.shape(segment_ids), dtype=data.dtype)
    sizes = tf.raw_ops.UnsortedSegmentSum(
        data=ones, segment_ids=segment_ids, num_segments=num_segments
    )
    shape = [-1] + [1] * (data.shape.rank - segment_ids.shape.rank)
    return tf.raw_ops.Maximum(x=tf.reshape(sizes, shape), y=1)
