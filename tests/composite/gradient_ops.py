"""Ops that the tests of gradients share, one for each thing that a gradient may meet in a body."""

import tensorflow as tf

from composite import Composite

_FLOATS = ["T: {float, double}"]


@Composite("OrdersTanh", inputs=["x: T", "w: T"], derived_attrs=_FLOATS, outputs=["y: T"])
def tanh(x, w):
    """A body with derivatives of any order."""
    return tf.tanh(x * w) * x


@Composite("OrdersTwo", inputs=["x: T", "w: T"], derived_attrs=_FLOATS, outputs=["y: T", "z: T"])
def two(x, w):
    """Two outputs, one computed from the other; the gradient of each is fed with both."""
    y = tf.exp(x * w)
    return y, tf.sin(y) * w


@Composite("OrdersStop", inputs=["x: T", "w: T"], derived_attrs=_FLOATS, outputs=["y: T"])
def stop(x, w):
    """A factor that is taken for a constant."""
    return tf.stop_gradient(x * w) * x * x


@Composite("OrdersIf", inputs=["x: T", "w: T"], derived_attrs=_FLOATS, outputs=["y: T"])
def branch(x, w):
    """A condition that a tensor decides."""
    if tf.reduce_sum(x) > 0.0:
        return x * x * x * w
    return tf.exp(x) * w


@Composite("OrdersWhile", inputs=["x: T", "w: T"], derived_attrs=_FLOATS, outputs=["y: T"])
def loop(x, w):
    """A loop that a tensor ends."""
    y = x
    while tf.reduce_sum(y * y) < 100.0:
        y = y * w * 1.5 + y
    return y


@Composite("OrdersGather", inputs=["p: T", "i: int32"], derived_attrs=_FLOATS, outputs=["y: T"])
def gather(p, i):
    """Rows of a table: TensorFlow's gradient of this is IndexedSlices."""
    return tf.sin(tf.gather(p, i))


@Composite("OrdersRows", inputs=["p: T", "i: int32"], derived_attrs=_FLOATS, outputs=["y: T"])
def rows(p, i):
    """As `gather`, with a gradient that is IndexedSlices to its end."""
    return tf.gather(p, i)


@Composite(
    "OrdersList",
    inputs=["xs: N * T", "k: int32"],
    derived_attrs=["N: int >= 2", *_FLOATS],
    outputs=["ys: N * T"],
)
def listed(xs, k):
    """A list of tensors of one type in and out, and an integer."""
    total = tf.add_n(xs) * tf.cast(k, xs[0].dtype)
    return [x * x * total for x in xs]


@Composite(
    "OrdersTypes", inputs=["xs: Ts"], derived_attrs=["Ts: list(type) >= 2"], outputs=["y: double"]
)
def types(xs):
    """A list of tensors of any types: a floating one, an integer one."""
    return tf.tanh(xs[0]) * tf.cast(xs[1], tf.float64)


@Composite(
    "OrdersComplex",
    inputs=["z: T"],
    derived_attrs=["T: {complex64, complex128}"],
    outputs=["y: T", "size: double"],
)
def complex_product(z):
    """A function that is not holomorphic, and a real one."""
    return z * z * tf.math.conj(z), tf.cast(tf.abs(z), tf.float64)


@Composite("OrdersRead", inputs=["v: resource", "x: float"], outputs=["y: float"])
def read(v, x):
    """Reads a variable."""
    return tf.raw_ops.ReadVariableOp(resource=v, dtype=tf.float32) * x * x


@Composite("OrdersScaled", inputs=["v: resource", "x: float"], outputs=["y: float"])
def scaled(v, x):
    """By what a variable holds."""
    return tf.raw_ops.ReadVariableOp(resource=v, dtype=tf.float32) * x


@Composite("OrdersUnused", inputs=["x: T", "w: T"], derived_attrs=_FLOATS, outputs=["y: T", "k: T"])
def unused(x, w):
    """An input that nothing reads, and an output that depends on none."""
    return x * x, tf.constant(2.0, x.dtype)


@Composite("OrdersLoops", inputs=["x: T", "w: T"], derived_attrs=_FLOATS, outputs=["y: T", "z: T"])
def loops(x, w):
    """One loop that carries two results; what the gradient of each keeps of it is not the same."""
    y, z = x, w
    while tf.reduce_sum(tf.abs(y)) < 40.0:
        y, z = y * 2.0 + 0.5, tf.sin(z) * z
    return y, z


@Composite(
    "GradientRounds",
    inputs=["x: float"],
    attrs=["deep: bool = false"],
    outputs=["y: float"],
)
def rounds(x, deep):
    """A loop whose gradient keeps more of a trip if it is `deep`; its condition is the same."""
    y = x
    for _ in range(tf.shape(x)[0]):
        y = tf.tanh(y) * y * x if deep else y * x
    return y
