"""Ops that the models of the tests use, here and in processes of their own."""

import tensorflow as tf

from composite import Composite


@Composite("KerasMish", inputs=["x: T"], derived_attrs=["T: {float, half}"], outputs=["y: T"])
def mish(x):
    return x * tf.tanh(tf.nn.softplus(x))


@Composite(
    "KerasTurn",
    inputs=["xs: N * T"],
    derived_attrs=["N: int", "T: {float, half}"],
    attrs=["by: float = 1.0", "kind: type = DT_FLOAT", "sizes: list(int) = []"],
    outputs=["s: T", "d: kind"],
)
def turn(xs, by, kind, sizes):
    return xs[0] + by * xs[1], tf.cast(xs[0] - xs[1], kind) + len(sizes)


@Composite("KerasError", inputs=["y: float", "z: float"], outputs=["e: float"])
def error(y, z):
    return tf.reduce_mean((y - z) ** 2, axis=-1)


@Composite("KerasCount", inputs=["v: resource", "x: float"], outputs=["y: float"])
def count(v, x):
    tf.raw_ops.AssignAddVariableOp(resource=v, value=x)
    return tf.raw_ops.ReadVariableOp(resource=v, dtype=tf.float32)
