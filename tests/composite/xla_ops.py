"""Composites of every kind of body, for the tests of what XLA makes of them."""

from __future__ import annotations

import tensorflow as tf

from composite import Composite

FLOATS = ["T: {float, double, half, bfloat16}"]


@Composite(
    "XlaActivated",
    inputs=["x: T", "scale: T"],
    attrs=["act: {'tanh', 'relu', ''} = ''", "times: int = 1"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def activated(x, scale, act, times):
    """Attributes decide a branch and a loop."""
    for i in range(times):
        x = x * scale + i
    if act == "tanh":
        return tf.tanh(x)
    if act == "relu":
        return tf.nn.relu(x)
    return x


@Composite(
    "XlaLists",
    inputs=["xs: N * T", "axis: int32"],
    attrs=["weights: list(float)"],
    derived_attrs=["N: int >= 1", *FLOATS],
    outputs=["ys: N * T", "total: T", "count: int32"],
)
def lists(xs, axis, weights):
    """Lists of inputs, attributes and outputs; an axis that must be constant."""
    ys = [x * tf.cast(w, x.dtype) for x, w in zip(xs, weights)]  # noqa: B905 - no `strict` in a body
    return ys, tf.reduce_sum(tf.add_n(ys), axis=axis), len(xs)


@Composite("XlaWeak", inputs=["x: T"], derived_attrs=FLOATS, outputs=["y: T"])
def weak(x):
    """Dims are numbers of Python's."""
    rows = x.shape[0]
    mean = tf.reduce_sum(x, axis=0) / rows
    return (x - mean) * (rows // 2) + rows % 3


@Composite(
    "XlaReshaped", inputs=["x: T", "shape: int32"], derived_attrs=["T: type"], outputs=["y: T"]
)
def reshaped(x, shape):
    """A shape that is an input."""
    return tf.reshape(x, shape)


@Composite("XlaTiled", inputs=["x: float", "rows: int32", "like: float"], outputs=["y: float"])
def tiled(x, rows, like):
    """A constant through a call of a composite, a list and arithmetic; `like` gives its shape."""
    flat = reshaped(x, [rows * 2, -1])
    return tf.broadcast_to(flat[0, 0], tf.shape(like))


@Composite("XlaDecided", inputs=["x: T"], derived_attrs=FLOATS, outputs=["y: T"])
def decided(x):
    """A tensor decides."""
    if tf.reduce_sum(x) > 0:
        return x * 2
    return tf.tanh(x)


@Composite("XlaHalved", inputs=["x: T"], derived_attrs=FLOATS, outputs=["y: T", "trips: int32"])
def halved(x):
    """A tensor ends the loop."""
    n = 0
    while tf.reduce_max(tf.abs(x)) > 0.25:
        x = x / 2
        n = n + 1
    return x, n


@Composite("XlaAsserted", inputs=["x: float"], outputs=["y: float"])
def asserted(x):
    """Stateful, for its assert."""
    assert tf.reduce_min(x) > 0, "x must be positive"
    return tf.sqrt(tf.abs(x))


@Composite("XlaDrawn", inputs=["x: float", "seed: int32"], outputs=["y: float"])
def drawn(x, seed):
    """Random numbers of a seed."""
    return x + tf.random.stateless_uniform(tf.shape(x), seed)


@Composite("XlaCubed", inputs=["x: T"], derived_attrs=FLOATS, outputs=["y: T"])
def cubed(x):
    """Calls a composite, and has a second derivative."""
    return activated(x, x, act="") * x


@Composite("XlaSpelled", inputs=["x: float"], attrs=["spell: bool"], outputs=["y: float"])
def spelled(x, spell):
    """Comes to an op that XLA has no kernel for, if it is asked to."""
    if spell:
        return tf.cast(tf.strings.length(tf.strings.as_string(x)), tf.float32)
    return x + 1


@Composite("XlaSquare", inputs=["x: float"], outputs=["y: float"])
def square(x):
    """Raises, of a rank; does not fit, of a shape."""
    if len(x.shape) != 2:
        raise ValueError(f"x has shape {x.shape}, which is no matrix")
    return tf.matmul(x, x)


@Composite("XlaSqueezed", inputs=["x: float", "axis: int32"], outputs=["y: float"])
def squeezed(x, axis):
    """An input in the place of an attribute, so its value decides the expansion."""
    return tf.squeeze(x, axis)


@Composite("XlaCalling", inputs=["x: float"], attrs=["f: func"], outputs=["y: float"])
def calling(x, f):
    """Calls a function that is an attribute."""
    (y,) = tf.raw_ops.PartitionedCall(args=[x], Tout=[tf.float32], f=f)
    return tf.tanh(y) if tf.reduce_sum(y) > 0 else y


@Composite("XlaAdding", inputs=["variable: resource", "x: float"], outputs=["y: float"])
def adding(variable, x):
    """Reads and writes a variable."""
    before = tf.raw_ops.ReadVariableOp(resource=variable, dtype=tf.float32)
    tf.raw_ops.AssignAddVariableOp(resource=variable, value=x)
    return before * x


@Composite("XlaShapedInside", inputs=["x: float", "rows: int32"], outputs=["y: float"])
def shaped_inside(x, rows):
    """A constant goes into branches and round a loop, under other names."""
    size = rows
    for _ in range(2):
        size = size + 1
    y = tf.reshape(x, [-1])
    while tf.reduce_max(y) > 0.5:
        y = tf.reshape(tf.reshape(y, [size, -1]) / 2, [-1])
    if tf.reduce_sum(y) > 0:
        return tf.reshape(y, [size, -1])
    return tf.reshape(-y, [size, -1])


@Composite(
    "XlaGrowing", inputs=["x: float"], attrs=["size: int", "grows: bool"], outputs=["y: float"]
)
def growing(x, size, grows):
    """Writes six rows of an array, which may have to grow."""
    rows = tf.TensorArray(tf.float32, size=size, dynamic_size=grows)
    for i in tf.range(6):
        rows = rows.write(i, x * tf.cast(i, tf.float32))
    return rows.stack()


@Composite("XlaRepeating", inputs=["x: float"], attrs=["times: int"], outputs=["y: float"])
def repeating(x, times):
    """A loop whose trips are known, and which could be one."""
    for i in range(times):
        x = tf.tanh(x * 0.9 + tf.cast(i, tf.float32) / 100.0)
    return x


@Composite("XlaPeeling", inputs=["x: float"], outputs=["y: float"])
def peeling(x):
    """A loop whose trips differ: it can be no While."""
    rows = [tf.reduce_sum(x, 0)]
    for i in range(x.shape[0]):
        rows = rows + [tf.reduce_sum(x[i:] * float(i + 1), 0)]  # noqa: RUF005
    return tf.stack(rows)
