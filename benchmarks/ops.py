"""Ops that only a benchmark needs."""

import tensorflow as tf

from composite import Composite


@Composite(
    "BenchFlattenRows",
    inputs=["x: T"],
    derived_attrs=["T: {float, double}"],
    outputs=["y: T"],
)
def flatten_rows(x):
    """Keep the batch, flatten the rest: the expansion reads the batch, so each size has its own."""
    return tf.raw_ops.Relu(features=tf.raw_ops.Reshape(tensor=x, shape=[x.shape[0], -1]))
