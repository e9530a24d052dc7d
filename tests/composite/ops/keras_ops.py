"""Ops that the models of the tests use, here and in processes of their own."""

import keras
import tensorflow as tf

from composite import Composite


@Composite(
    "KerasMish", inputs=["x: T"], derived_attrs=["T: {float, half, bfloat16}"], outputs=["y: T"]
)
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


@Composite(
    "KerasScale",
    inputs=["x: T", "gain: T"],
    derived_attrs=["T: {float, half, bfloat16}"],
    outputs=["y: T"],
)
def scale(x, gain):
    wide = tf.cast(x, tf.float32)
    wide = wide / (1.0 + tf.reduce_max(tf.abs(wide), axis=-1, keepdims=True))
    return tf.cast(wide, x.dtype) * tf.cast(tf.cast(gain, tf.float32) + 1.0, x.dtype)


@keras.saving.register_keras_serializable("tests")
class Scale(keras.layers.Layer):
    """A layer with a weight, which Keras casts to the dtype of its computations."""

    def build(self, shape):
        self.gain = self.add_weight(shape=(shape[-1],), initializer="ones", name="gain")

    def call(self, x):
        return scale(x, tf.convert_to_tensor(self.gain))
