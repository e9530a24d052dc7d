"""Bodies for ops that TensorFlow has already, some of them without kernels."""

import tensorflow as tf

from composite import Composite


@Composite("AddN")
def add_n(inputs):
    """The sum of a list of tensors of one shape, from left to right."""
    total = inputs[0]
    for one in inputs[1:]:
        total += one
    return total


@Composite("Erfinv")
def erfinv(x):
    """The inverse of the error function; float32 serves for the narrower dtypes."""
    if x.dtype in (tf.float16, tf.bfloat16):
        return tf.cast(tf.raw_ops.Erfinv(x=tf.cast(x, tf.float32)), x.dtype)
    return tf.raw_ops.Erfinv(x=x)


@Composite("SegmentSumV2")
def segment_sum(data, segment_ids, num_segments):
    """The sums of the rows with one segment number; 0 for a number that no row has."""
    return tf.raw_ops.UnsortedSegmentSum(
        data=data, segment_ids=segment_ids, num_segments=num_segments
    )


@Composite("SegmentProdV2")
def segment_prod(data, segment_ids, num_segments):
    """The products of the rows with one segment number; 1 for a number that no row has."""
    return tf.raw_ops.UnsortedSegmentProd(
        data=data, segment_ids=segment_ids, num_segments=num_segments
    )


@Composite("SegmentMaxV2")
def segment_max(data, segment_ids, num_segments):
    """The largest of the rows with one segment number; the lowest number for one without rows."""
    return tf.raw_ops.UnsortedSegmentMax(
        data=data, segment_ids=segment_ids, num_segments=num_segments
    )


@Composite("SegmentMinV2")
def segment_min(data, segment_ids, num_segments):
    """The least of the rows with one segment number; the highest number for one without rows."""
    return tf.raw_ops.UnsortedSegmentMin(
        data=data, segment_ids=segment_ids, num_segments=num_segments
    )
