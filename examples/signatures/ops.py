"""One op for each kind of input, output and attribute that a declaration can have."""

import tensorflow as tf

from composite import Composite


@Composite("NothingInNothingOut", inputs=[], outputs=[])
def nothing_in_nothing_out():
    """No input, no output, no work."""


@Composite("Same", inputs=["x: T"], derived_attrs=["T: type"], outputs=["o: T"])
def same(x):
    """One tensor of any dtype, as it is."""
    return tf.identity(x)


@Composite(
    "SameList",
    inputs=["xs: N * T"],
    derived_attrs=["N: int >= 1", "T: type"],
    outputs=["os: N * T"],
)
def same_list(xs):
    """N tensors of one dtype, each as it is."""
    return [tf.identity(x) for x in xs]


@Composite(
    "SameTuple",
    inputs=["xs: Ts"],
    derived_attrs=["Ts: list(type) >= 1"],
    outputs=["os: Ts"],
)
def same_tuple(xs):
    """Tensors of several dtypes, each as it is."""
    return tf.raw_ops.IdentityN(input=xs)


@Composite(
    "SumOfList",
    inputs=["xs: N * T"],
    derived_attrs=["N: int >= 1", "T: numbertype"],
    outputs=["o: T"],
)
def sum_of_list(xs):
    """The sum of N tensors of one shape."""
    total = xs[0]
    for x in xs[1:]:
        total += x
    return total


@Composite(
    "Copies",
    inputs=["x: T"],
    attrs=["N: int >= 0"],
    derived_attrs=["T: type"],
    outputs=["os: N * T"],
)
def copies(x, N):  # noqa: N803 - as TensorFlow calls the length of a list
    """The tensor N times: the caller gives the length, since no input does."""
    return [tf.identity(x) for _ in range(N)]


@Composite(
    "EitherOf",
    inputs=["x: T", "y: T"],
    attrs=["first: bool"],
    derived_attrs=["T: type"],
    outputs=["o: T"],
)
def either_of(x, y, first):
    """One of two tensors, chosen while the graph is made."""
    if first:
        return tf.identity(x)
    return tf.identity(y)


@Composite(
    "RotatedAxis",
    inputs=["x: T"],
    attrs=["axis: int", "by: int = 1"],
    derived_attrs=["T: type"],
    outputs=["o: T"],
)
def rotated_axis(x, axis, by):
    """The entries along an axis, moved by so many places; those that fall out come in again."""
    size = x.shape[axis]
    if size == 0:
        return tf.identity(x)
    parts = tf.raw_ops.Split(axis=axis, value=x, num_split=size)
    return tf.concat([parts[(i - by) % size] for i in range(size)], axis)


@Composite(
    "Line",
    inputs=["x: float"],
    attrs=["slope: float = 1.0", "offset: int = 0", "weights: list(float) = []"],
    outputs=["o: float"],
)
def line(x, slope, offset, weights):
    """Numbers as attributes: slope * x + offset, plus the powers x**2, x**3, ... times weights."""
    o = slope * x + offset
    for i, weight in enumerate(weights):
        o += weight * tf.pow(x, i + 2.0)
    return o


@Composite(
    "Filled",
    inputs=[],
    attrs=[
        "shape: shape",
        "dtype: {float, int32, string}",
        "text: string = 'x'",
        "number: float = 0.0",
        "axes: list(int) = [0]",
    ],
    outputs=["o: dtype"],
)
def filled(shape, dtype, text, number, axes):
    """What is no number as attributes: a tensor of a shape and dtype, made from nothing.

    Strings are the text, numbers the number; the axes that are named are reversed.
    """
    value = tf.convert_to_tensor(text) if dtype == tf.string else tf.cast(number, dtype)
    return tf.reverse(tf.fill(shape, value), axes)


@Composite(
    "WeightedSum",
    inputs=["x: T", "w: T", "bias: T"],
    attrs=['act: {"", "RELU", "TANH"} = ""'],
    derived_attrs=["T: {half, bfloat16, float, double}"],
    outputs=["o: T"],
)
def weighted_sum(x, w, bias, act):
    """Three inputs and a string of a set: act(x * w + bias)."""
    o = x * w + bias
    if act == "RELU":
        return tf.nn.relu(o)
    elif act == "TANH":
        return tf.tanh(o)
    return o


@Composite(
    "LeastAndMost",
    inputs=["x: T"],
    attrs=["keep_dims: bool = false"],
    derived_attrs=["T: realnumbertype"],
    outputs=["least: T", "most: T"],
)
def least_and_most(x, keep_dims):
    """Two outputs: the smallest and the largest entries along the last axis."""
    return (
        tf.reduce_min(x, axis=-1, keepdims=keep_dims),
        tf.reduce_max(x, axis=-1, keepdims=keep_dims),
    )
