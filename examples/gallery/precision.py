"""What the ops of this folder share: the dtypes that they take, and the one that they sum in."""

import tensorflow as tf

FLOATS = ["T: {float, double, half, bfloat16}"]


def widened(x):
    """X in the dtype that sums are made in: float32 for half precision, else its own."""
    return tf.cast(x, tf.float32) if x.dtype in (tf.float16, tf.bfloat16) else x
