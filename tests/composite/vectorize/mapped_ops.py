"""Ops of every kind that tf.vectorized_map may meet; test_batching.py maps over each of them."""

import tensorflow as tf

from composite import Composite

T = ["T: {float, double}"]


@Composite(
    "MappedElements",
    inputs=["x: T", "scale: T"],
    attrs=["twice: bool = false"],
    derived_attrs=T,
    outputs=["y: T"],
)
def elements(x, scale, twice):
    """Element-wise: the batch is one call."""
    y = tf.tanh(x * scale) + 0.5
    return y + y if twice else y


@Composite("MappedRanks", inputs=["x: T"], derived_attrs=T, outputs=["y: T"])
def ranks(x):
    """Element-wise for a vector only."""
    return x * 2.0 if x.shape.rank == 1 else tf.exp(x)


@Composite("MappedMatmul", inputs=["x: T", "w: T"], derived_attrs=T, outputs=["y: T"])
def matmul(x, w):
    """What is no batch of itself: a product, a row sum."""
    return tf.nn.softmax(tf.matmul(x, w)) / tf.reduce_sum(tf.exp(x), axis=-1, keepdims=True)


@Composite("MappedOuter", inputs=["x: T", "w: T"], derived_attrs=T, outputs=["y: T"])
def outer(x, w):
    """Calls another composite."""
    return tf.reduce_max(matmul(x, w), axis=0) + tf.reduce_mean(elements(x, w[0, 0]))


@Composite(
    "MappedOutputs",
    inputs=["x: T", "w: T"],
    derived_attrs=T,
    outputs=["y: T", "size: int32", "w_again: T"],
)
def outputs(x, w):
    """Several outputs, of which some are the same for all elements."""
    return tf.reduce_sum(x * w, axis=0), tf.shape(x)[0], w


@Composite(
    "MappedLists",
    inputs=["xs: N * T", "ys: Us"],
    derived_attrs=["N: int >= 1", "Us: list({float, int32})", *T],
    outputs=["sums: N * T", "total: T", "again: Us"],
)
def lists(xs, ys):
    """Lists of one type and of several."""
    return [tf.reduce_sum(x, axis=0) for x in xs], tf.add_n(xs), [y + y for y in ys]


@Composite("MappedIf", inputs=["x: T", "y: T"], derived_attrs=T, outputs=["z: T"])
def chooses(x, y):
    """A tensor decides; one branch decides again."""
    if tf.reduce_sum(x) > 0.0:
        if x[0] > y[0]:
            x = x * y
        return tf.sin(x)
    return tf.cumsum(y) - x


@Composite("MappedWhile", inputs=["x: T", "step: T"], derived_attrs=T, outputs=["y: T"])
def loops(x, step):
    """Each element takes its own number of iterations."""
    y = x
    while tf.reduce_sum(y) < 10.0:
        if y[0] > x[0] + 1.0:
            y = y + step * step
        y = y + step
    return y * x


@Composite("MappedGrow", inputs=["x: T"], derived_attrs=T, outputs=["y: T"])
def grows(x):
    """A loop that carries other sizes each time."""
    while tf.size(x) < 20:
        x = tf.concat([x, x], axis=0)
    return x


@Composite("MappedRandom", inputs=["x: float", "seed: int32"], outputs=["y: float"])
def random(x, seed):
    """Drops elements, by a seed that is an input."""
    return tf.where(tf.random.stateless_uniform(tf.shape(x), seed) < 0.5, 0.0, x)


@Composite("MappedAssert", inputs=["x: T"], derived_attrs=T, outputs=["y: T"])
def asserts(x):
    """Refuses negative numbers when it runs."""
    assert tf.reduce_min(x) >= 0.0, "negative"
    return tf.sqrt(x)


@Composite("MappedGuarded", inputs=["x: T"], derived_attrs=T, outputs=["y: T"])
def guarded(x):
    """A branch that may fail: its gradient keeps state."""
    if tf.reduce_sum(x) > 0.0:
        assert tf.reduce_max(x) < 10.0, "too large"
        return tf.exp(x)
    return x * x


@Composite("MappedDims", inputs=["x: T"], derived_attrs=T, outputs=["y: T"])
def dims(x):
    """Needs to know a dim when it expands."""
    parts = tf.split(x, x.shape[0])
    return parts[0] - parts[-1]


@Composite("MappedCount", inputs=["counter: resource", "x: float"], outputs=["y: float"])
def counts(counter, x):
    """Adds to a variable each time it runs."""
    tf.raw_ops.AssignAddVariableOp(resource=counter, value=tf.constant(1.0))
    return x + 1.0


@Composite("MappedGet", inputs=["variable: resource", "x: float"], outputs=["y: float"])
def gets(variable, x):
    """Reads a variable."""
    return x * tf.raw_ops.ReadVariableOp(resource=variable, dtype=tf.float32)


@Composite("MappedTell", inputs=["x: float"])
def tells(x):
    """No outputs: it fails, or it does not."""
    assert tf.reduce_min(x) >= 0.0, "negative"
