"""Ops for the tests of composite.check: right ones, whose parts the tests then make wrong."""

import tensorflow as tf

from composite import Composite


@Composite(
    "CheckedBend",
    inputs=["x: T"],
    attrs=["by: float = 2.0"],
    derived_attrs=["T: {float, double}"],
    outputs=["y: T"],
)
def bend(x, by):
    """tanh(x * by) + x."""
    return tf.tanh(x * by) + x


@Composite(
    "CheckedAttributes",
    inputs=["xs: N * T", "mixed: kinds", "flag: bool", "label: string", "count: int32"],
    attrs=[
        "size: int >= 2 = 3",
        "sizes: list(int)",
        "scales: list(float) = [0.5]",
        'mode: {"up", "down"}',
        "to: {float, double}",
        "shape: shape",
        "names: list(string) = []",
    ],
    derived_attrs=["N: int >= 1", "T: {float, half}", "kinds: list(type)"],
    outputs=["ys: N * T", "flag_out: bool"],
)
def attributes(  # noqa: PLR0917 - inputs and attributes are positional in a body
    xs, mixed, flag, label, count, size, sizes, scales, mode, to, shape, names
):
    """Every kind of attribute and input, so that drawing meets them; changes nothing."""
    return xs, flag


@Composite("CheckedSquare", inputs=["x: float"], outputs=["y: float"])
def square_only(x):
    """X @ x, which takes square matrices only."""
    return x @ x


@Composite(
    "CheckedNoKernel", inputs=["x: T"], derived_attrs=["T: {float, double}"], outputs=["y: T"]
)
def no_kernel(x):
    """A function that no kernel covers."""
    return tf.math.lgamma(x)


@Composite("CheckedNumbers", attrs=["k: int"], outputs=["y: float", "z: int32"])
def numbers(k):
    """Results that are Python's numbers."""
    return k / 2, k * 3


@Composite("CheckedTruncated", inputs=["x: float"], outputs=["y: float"])
def truncated(x):
    """The sum of the rows' whole parts; of a NaN, XLA has another than the ops run one by one."""
    y = tf.zeros_like(x[0])
    for t in range(tf.shape(x)[0]):
        y = y + tf.cast(tf.cast(x[t], tf.int32), tf.float32)
    return y


@Composite("CheckedSelfProduct", inputs=["x: float"], outputs=["y: float"])
def self_product(x):
    """A matrix times itself."""
    return x @ x


@Composite(
    "CheckedGates",
    inputs=["x: T", "kernel: T", "c: T"],
    derived_attrs=["T: {float, double}"],
    outputs=["y: T"],
)
def gates(x, kernel, c):
    """A product that is cut into four gates."""
    i, f, g, o = tf.split(x @ kernel, 4, axis=1)
    return tf.sigmoid(o) * tf.tanh(tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g))


@Composite(
    "CheckedScores",
    inputs=["query: T", "key: T", "value: T"],
    derived_attrs=["T: {float, double}"],
    outputs=["y: T"],
)
def scores(query, key, value):
    """Tensors of rank 4 that have dims in common by twos and threes."""
    found = tf.einsum("bqhd,bkhd->bhqk", query, key)
    return tf.einsum("bhqk,bkhd->bqhd", found, value)


@Composite("CheckedDiagonals", inputs=["x: float", "mask: bool"], outputs=["y: float"])
def diagonals(x, mask):
    """Diagonals of a matrix of unknown width, whose gradient TensorFlow has in eager mode alone."""
    return tf.linalg.diag_part(tf.boolean_mask(x, mask, axis=1), k=(-1, 0))


@Composite(
    "CheckedSaturated", inputs=["x: T"], derived_attrs=["T: {float, double}"], outputs=["y: T"]
)
def saturated(x):
    """Tanh: of large numbers nearly 1, so that its last bit decides the gradient."""
    return tf.tanh(x)


@Composite(
    "CheckedFirstColumns",
    inputs=["x: T", "w: T", "b: T"],
    attrs=["n: int"],
    derived_attrs=["T: {float, double}"],
    outputs=["y: T"],
)
def of_first_columns(x, w, b, n):
    """A dense layer of the first n columns, of which there may be none."""
    return tf.tanh(tf.nn.bias_add(x[:, :n] @ w[:n], b))


@Composite(
    "TestOverNumber",
    inputs=["x: T"],
    attrs=["r: float"],
    derived_attrs=["T: {float, double}"],
    outputs=["y: T"],
)
def over_number(x, r):
    return x / r
