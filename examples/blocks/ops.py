"""What people fuse, each one node: norms, softmax, cross entropy, an MLP, attention, dropout."""

import tensorflow as tf

from composite import Composite
from examples.gallery.precision import FLOATS, widened

HIDDEN = -1e9  # the score of a key that a query does not see


def shifted(logits):
    """The logits minus the largest of their row, so that no exponential overflows."""
    return logits - tf.stop_gradient(tf.reduce_max(logits, -1, keepdims=True))


def probabilities(logits):
    """exp(logits) / sum(exp(logits)) over the last axis, by way of `shifted`."""
    e = tf.exp(shifted(logits))
    return e / tf.reduce_sum(e, -1, keepdims=True)


def log_probabilities(logits):
    """The logarithm of `probabilities`: logits - log(sum(exp(logits)))."""
    z = shifted(logits)
    return z - tf.math.log(tf.reduce_sum(tf.exp(z), -1, keepdims=True))


@Composite(
    "FusedLayerNorm",
    inputs=["x: T", "gamma: T", "beta: T"],
    attrs=["epsilon: float = 1e-5"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def fused_layer_norm(x, gamma, beta, epsilon):
    """Layer normalization: gamma * (x - mean) / sqrt(variance + epsilon) + beta, row by row.

    Args:
        x: [..., n]; mean and variance are those of the last axis.
        gamma: [n].
        beta: [n].
        epsilon: what keeps a constant row from a division by zero.

    Returns:
        [..., n].
    """
    wide = widened(x)
    centred = wide - tf.reduce_mean(wide, -1, keepdims=True)
    variance = tf.reduce_mean(centred * centred, -1, keepdims=True)
    normal = centred * tf.math.rsqrt(variance + epsilon)
    return tf.cast(normal, x.dtype) * gamma + beta


@Composite(
    "FusedRmsNorm",
    inputs=["x: T", "gamma: T"],
    attrs=["epsilon: float = 1e-6"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def fused_rms_norm(x, gamma, epsilon):
    """Normalization by the root mean square: gamma * x / sqrt(mean(x²) + epsilon), row by row.

    Args:
        x: [..., n].
        gamma: [n].
        epsilon: what keeps a row of zeros from a division by zero.

    Returns:
        [..., n].
    """
    wide = widened(x)
    normal = wide * tf.math.rsqrt(tf.reduce_mean(wide * wide, -1, keepdims=True) + epsilon)
    return tf.cast(normal, x.dtype) * gamma


@Composite("FusedSoftmax", inputs=["logits: T"], derived_attrs=FLOATS, outputs=["y: T"])
def fused_softmax(logits):
    """Softmax over the last axis: exp(logits) / sum(exp(logits)), for logits of any size.

    Args:
        logits: [..., n].

    Returns:
        [..., n], each row with the sum 1.
    """
    return tf.cast(probabilities(widened(logits)), logits.dtype)


@Composite(
    "FusedSparseCrossEntropy",
    inputs=["logits: T", "labels: Index"],
    derived_attrs=[*FLOATS, "Index: {int32, int64}"],
    outputs=["loss: T"],
)
def fused_sparse_cross_entropy(logits, labels):
    """Cross entropy of classes, by their numbers: -log(softmax(logits)[label]).

    Args:
        logits: [..., classes].
        labels: [...], 0 <= label < classes; the loss of any other label is 0.

    Returns:
        [...], a loss for each label.
    """
    logs = log_probabilities(widened(logits))
    classes = tf.range(tf.shape(logits, labels.dtype)[-1])
    chosen = tf.where(tf.equal(classes, tf.expand_dims(labels, -1)), logs, 0.0)
    return tf.cast(-tf.reduce_sum(chosen, -1), logits.dtype)


@Composite(
    "FusedCrossEntropy",
    inputs=["logits: T", "labels: T"],
    derived_attrs=FLOATS,
    outputs=["loss: T"],
)
def fused_cross_entropy(logits, labels):
    """Cross entropy of distributions: -sum(labels * log(softmax(logits))) over the last axis.

    Args:
        logits: [..., classes].
        labels: [..., classes], each row a distribution.

    Returns:
        [...], a loss for each row.
    """
    logs = log_probabilities(widened(logits))
    return tf.cast(-tf.reduce_sum(widened(labels) * logs, -1), logits.dtype)


@Composite(
    "FusedGeluMlp",
    inputs=["x: T", "w_in: T", "b_in: T", "w_out: T", "b_out: T"],
    attrs=["approximate: bool = false"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def fused_gelu_mlp(x, w_in, b_in, w_out, b_out, approximate):  # noqa: PLR0913, PLR0917 - the op's
    """Two dense layers with a GELU between them: gelu(x @ w_in + b_in) @ w_out + b_out.

    Args:
        x: [rows, n].
        w_in: [n, hidden].
        b_in: [hidden].
        w_out: [hidden, m].
        b_out: [m].
        approximate: whether GELU's Φ is computed by tanh, or by erfc.

    Returns:
        [rows, m].
    """
    hidden = tf.nn.gelu(tf.nn.bias_add(tf.matmul(x, w_in), b_in), approximate)
    return tf.nn.bias_add(tf.matmul(hidden, w_out), b_out)


@Composite(
    "FusedAttention",
    inputs=["query: T", "key: T", "value: T", "mask: bool"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def fused_attention(query, key, value, mask):
    """Scaled dot product attention of one head: softmax(query @ keyᵀ / √n where mask) @ value.

    Args:
        query: [..., queries, n].
        key: [..., keys, n].
        value: [..., keys, m].
        mask: broadcasts to [..., queries, keys]; False hides a key from a query. A query that sees
            none takes the mean of all values.

    Returns:
        [..., queries, m].
    """
    scores = widened(tf.matmul(query, key, transpose_b=True)) / query.shape[-1] ** 0.5
    seen = tf.where(mask, scores, HIDDEN)
    return tf.matmul(tf.cast(probabilities(seen), value.dtype), value)


@Composite(
    "FusedBiasDropoutResidual",
    inputs=["x: T", "bias: T", "residual: T", "seed: int32"],
    attrs=["rate: float = 0.1"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def fused_bias_dropout_residual(x, bias, residual, seed, rate):
    """The end of a block: residual + dropout(x + bias).

    Args:
        x: [..., n].
        bias: [n].
        residual: [..., n].
        seed: [2]. It alone decides which elements are dropped, here and in the gradient.
        rate: the part of the elements that become 0, below 1; the others grow by 1 / (1 - rate).

    Returns:
        [..., n].
    """
    biased = x + bias
    if rate == 0:
        return residual + biased
    kept = tf.random.stateless_uniform(tf.shape(x), seed) >= rate
    return residual + tf.where(kept, biased / (1 - rate), 0.0)
