"""Ops that the tests find in graphs that were written without them."""

from __future__ import annotations

import tensorflow as tf

from composite import Composite

FLOATS = ["T: {float, double, half, bfloat16}"]


@Composite(
    "FoundLayerNorm",
    inputs=["x: T", "gamma: T", "beta: T"],
    attrs=["epsilon: float = 1e-5"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def layer_norm(x, gamma, beta, epsilon):
    """Rows with mean 0 and variance 1, scaled and moved."""
    mean = tf.reduce_mean(x, -1, keepdims=True)
    variance = tf.math.reduce_variance(x, -1, keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + epsilon) * gamma + beta


@Composite(
    "FoundRmsNorm",
    inputs=["x: T", "gamma: T"],
    attrs=["epsilon: float = 1e-6"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def rms_norm(x, gamma, epsilon):
    """Rows with mean square 1, scaled."""
    mean_square = tf.reduce_mean(tf.square(x), -1, keepdims=True)
    return x * tf.math.rsqrt(mean_square + epsilon) * gamma


@Composite("FoundMish", inputs=["x: T"], derived_attrs=FLOATS, outputs=["y: T"])
def mish(x):
    """The product x * tanh(softplus(x))."""
    return x * tf.tanh(tf.nn.softplus(x))


@Composite("FoundHardSwish", inputs=["x: T"], derived_attrs=FLOATS, outputs=["y: T"])
def hard_swish(x):
    """The product x * relu6(x + 3) / 6."""
    return x * tf.nn.relu6(x + 3) / 6


@Composite("FoundGelu", inputs=["x: T"], derived_attrs=FLOATS, outputs=["y: T"])
def gelu(x):
    """The approximation of GELU by a tanh."""
    return tf.nn.gelu(x, approximate=True)


@Composite(
    "FoundSwiGlu",
    inputs=["x: T", "w_gate: T", "w_up: T", "w_down: T"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def swiglu(x, w_gate, w_up, w_down):
    """(silu(x @ w_gate) * (x @ w_up)) @ w_down."""
    return (tf.nn.silu(x @ w_gate) * (x @ w_up)) @ w_down


@Composite(
    "FoundCrossEntropy",
    inputs=["logits: T", "labels: T"],
    derived_attrs=FLOATS,
    outputs=["loss: T"],
)
def cross_entropy(logits, labels):
    """Of each row, -sum(labels * log(softmax(logits)))."""
    return tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)


@Composite(
    "FoundAttention",
    inputs=["query: T", "key: T", "value: T", "mask: masks * bool"],
    attrs=["causal: bool = false"],
    derived_attrs=[*FLOATS, "masks: int >= 0"],
    outputs=["y: T"],
)
def attention(query, key, value, mask, causal):
    """softmax(query @ keyᵀ / √width) @ value of each head, of what is seen."""
    scores = tf.einsum("bqhd,bkhd->bhqk", query, key) / query.shape[-1] ** 0.5
    if causal:
        seen = tf.range(tf.shape(query)[1])[:, None] >= tf.range(tf.shape(key)[1])
        scores = tf.where(seen, scores, -1e9)
    for seen in mask:
        scores = tf.where(seen, scores, -1e9)
    return tf.einsum("bhqk,bkhd->bqhd", tf.nn.softmax(scores), value)


@Composite(
    "FoundRotary",
    inputs=["x: T", "positions: int32"],
    attrs=["base: float = 10000.0"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def rotary(x, positions, base):
    """Pairs (x[i], x[i + width / 2]) turned by position / base^(2i / width)."""
    half = x.shape[-1] // 2
    frequencies = base ** (-tf.range(half, dtype=x.dtype) / half)
    angles = tf.cast(positions, x.dtype)[:, None, None] * frequencies
    sin, cos = tf.sin(angles), tf.cos(angles)
    left, right = tf.split(x, 2, axis=-1)
    return tf.concat([left * cos - right * sin, right * cos + left * sin], -1)


@Composite(
    "FoundMoments",
    inputs=["x: T"],
    attrs=['over: {"ROWS", "COLUMNS"} = "ROWS"'],
    derived_attrs=FLOATS,
    outputs=["mean: T", "variance: T"],
)
def moments(x, over):
    """The mean and the variance along an axis."""
    axis = -1 if over == "ROWS" else 0
    return tf.reduce_mean(x, axis), tf.math.reduce_variance(x, axis)


@Composite("FoundLogOfSquare", inputs=["x: T"], derived_attrs=FLOATS, outputs=["y: T"])
def log_of_square(x):
    """The logarithm of the square of what is positive."""
    return 2 * tf.math.log(x)
