"""Ops of the tests of clusters: one with products and functions, one whose gradient is its own."""

import tensorflow as tf

from composite import Composite


@Composite("ClusterDense", inputs=["x: T", "w: T"], derived_attrs=["T: {float, double}"],
           outputs=["y: T"])  # fmt: skip
def dense(x, w):
    return tf.math.softplus(tf.matmul(x, w)) * 2.0


@Composite("ClusterScale", inputs=["x: float"], outputs=["y: float"])
def scale(x):
    return x * 2.0


@scale.gradient
def _scale_gradient(op, upstream):
    return upstream * 5.0 * op.inputs[0] * op.outputs[0]
