"""Ops with and without what `composite.lint` finds."""

import tensorflow as tf

from composite import Composite


@Composite("LintClean", inputs=["x: T"], derived_attrs=["T: {float, bfloat16}"], outputs=["y: T"])
def clean(x):
    """Nothing is found."""
    return tf.tanh(x) * x


@Composite(
    "LintUnlisted",
    inputs=["x: T"],
    attrs=['act: {"", "STEP"} = ""'],
    derived_attrs=["T: {float, complex64}"],
    outputs=["y: T"],
)
def unlisted(x, act):
    """An op without lowering for one value of the attribute; a dtype without any."""
    y = x * x
    if act == "STEP":
        y = y + tf.cast(tf.raw_ops.Bucketize(input=x, boundaries=[0.5]), x.dtype)
    return y


@Composite("LintCaller", inputs=["x: float"], outputs=["y: float"])
def caller(x):
    """What is found is in an op that it calls, and in the gradient of a line of its own."""
    return unlisted(x, act="STEP") + tf.math.erfinv(x)


@Composite("LintVarying", inputs=["x: float"], outputs=["y: float"])
def varying(x):
    """A kernel for known sizes alone."""
    return tf.split(x, 2, axis=1)[0]


@Composite("LintRate", inputs=["x: float", "i: int64"], attrs=["rate: float"], outputs=["y: float"])
def rated(x, i, rate):
    """What its declaration shows."""
    return tf.gather(x, i) * rate


@Composite("LintWide", inputs=["x: float"], outputs=["y: float"])
def wide(x):
    """It computes in 64 bits between 32."""
    return tf.cast(tf.cast(x, tf.float64) * 2, tf.float32)


@Composite("LintAgain", inputs=["x: float", "w: float"], outputs=["y: float", "z: float"])
def again(x, w):
    """An output that is an input: the forward can keep nothing, and the product is made again."""
    return x, tf.tanh(tf.matmul(x, w)) * w[0, 0] * tf.matmul(x, w)
