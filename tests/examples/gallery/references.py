"""What each op of the gallery is to compute, written another way, over float64 tensors.

A reference takes the inputs and attributes of the op. Most are Keras's own functions, or try all
cases one by one; they share no code with the ops.
"""

from __future__ import annotations

import itertools
from typing import Any

import keras
import numpy as np
import tensorflow as tf


def standardized(x: Any, axes: Any, epsilon: float) -> Any:
    mean = tf.reduce_mean(x, axes, keepdims=True)
    return (x - mean) / tf.sqrt(tf.math.reduce_variance(x, axes, keepdims=True) + epsilon)


def layer_norm(x: Any, gamma: Any, beta: Any, epsilon: float) -> Any:
    return keras.ops.layer_normalization(x, gamma, beta, epsilon=epsilon)


def rms_norm(x: Any, gamma: Any, epsilon: float) -> Any:
    return keras.ops.rms_normalization(x, gamma, epsilon=epsilon)


def group_norm(x: Any, gamma: Any, beta: Any, groups: int, epsilon: float) -> Any:
    parts = [standardized(part, [1, 2, 3], epsilon) for part in tf.split(x, groups, -1)]
    return tf.concat(parts, -1) * gamma + beta


def instance_norm(x: Any, gamma: Any, beta: Any, epsilon: float) -> Any:
    return group_norm(x, gamma, beta, x.shape[-1], epsilon)


def rotary_embedding(x: Any, positions: Any, base: float) -> Any:
    """Complex numbers, turned."""
    half = x.shape[-1] // 2
    angles = np.outer(positions, [base ** (-i / half) for i in range(half)])
    turned = tf.complex(x[..., :half], x[..., half:]) * np.exp(1j * angles)[:, None]
    return tf.concat([tf.math.real(turned), tf.math.imag(turned)], -1)


def swiglu(x: Any, w_gate: Any, w_up: Any, w_down: Any) -> Any:
    return tf.matmul(keras.activations.silu(x @ w_gate) * (x @ w_up), w_down)


def attention(query: Any, key: Any, value: Any, mask: Any, causal: bool) -> Any:
    """A head after the other, the hidden keys left out by the logarithm of 0."""
    bias = np.zeros([query.shape[1], key.shape[1]])
    for one in mask:
        bias += np.where(one, 0.0, -np.inf)
    if causal:
        bias += np.where(np.tri(*bias.shape) == 1, 0.0, -np.inf)
    heads = []
    for h in range(query.shape[2]):
        scores = tf.matmul(query[:, :, h], key[:, :, h], transpose_b=True)
        weights = keras.activations.softmax(scores / np.sqrt(query.shape[-1]) + bias)
        heads.append(weights @ value[:, :, h])
    return tf.stack(heads, 2)


def focal_loss(logits: Any, labels: Any, alpha: float, gamma: float) -> Any:
    p = 1 / (1 + tf.exp(-logits))
    true = -alpha * (1 - p) ** gamma * tf.math.log(p)
    return tf.where(labels == 1, true, -(1 - alpha) * p**gamma * tf.math.log(1 - p))


def huber_loss(predictions: Any, targets: Any, delta: float) -> Any:
    return keras.losses.huber(targets, predictions, delta)


def box_iou(boxes: Any, others: Any) -> Any:
    """Each two boxes alone."""

    def iou(a: Any, b: Any) -> Any:
        sides = tf.maximum(tf.minimum(a[2:], b[2:]) - tf.maximum(a[:2], b[:2]), 0)
        common = tf.reduce_prod(sides)
        return common / (tf.reduce_prod(a[2:] - a[:2]) + tf.reduce_prod(b[2:] - b[:2]) - common)

    return tf.stack([tf.stack([iou(a, b) for b in others]) for a in boxes])


def mish(x: Any) -> Any:
    return keras.activations.mish(x)


def hard_swish(x: Any) -> Any:
    return x * tf.clip_by_value(x / 6 + 0.5, 0, 1)


def embedding_bag(table: Any, ids: Any, bags: Any, count: Any, combiner: str) -> Any:
    """A bag after the other."""
    power = {"sum": 0.0, "mean": 1.0, "sqrtn": 0.5}[combiner]
    rows = []
    for bag in range(int(count)):
        chosen = np.asarray(ids)[np.asarray(bags) == bag]
        rows.append(sum((table[i] for i in chosen), tf.zeros_like(table[0])))
        rows[-1] /= max(len(chosen), 1) ** power
    return tf.stack(rows)


def layer_norm_lstm_cell(  # noqa: PLR0917 - the op's
    x: Any,
    h: Any,
    c: Any,
    kernel: Any,
    recurrent: Any,
    gammas: Any,
    bias: Any,
    gamma: Any,
    beta: Any,
) -> Any:
    z = standardized(x @ kernel, -1, 1e-5) * gammas[0]
    z += standardized(h @ recurrent, -1, 1e-5) * gammas[1] + bias
    units = h.shape[1]
    i, f, g, o = (z[:, at : at + units] for at in range(0, 4 * units, units))
    kept = c / (1 + tf.exp(-f)) + tf.tanh(g) / (1 + tf.exp(-i))
    return tf.tanh(standardized(kept, -1, 1e-5) * gamma + beta) / (1 + tf.exp(-o)), kept


def top_k_gate(logits: Any, k: int) -> Any:
    least = tf.sort(logits, direction="DESCENDING")[:, k - 1 : k]
    e = tf.where(logits >= least, tf.exp(logits), 0)
    return e / tf.reduce_sum(e, -1, keepdims=True)


def fake_quant(x: Any, step: Any, bits: int) -> Any:
    """With the gradients of equations 2 and 3 of the paper."""

    @tf.custom_gradient
    def quantized(x: Any, step: Any) -> Any:
        least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        scaled = x / step
        inside = (scaled > least) & (scaled < most)
        kept = np.clip(np.round(scaled), least, most)

        def gradient(upstream: Any) -> Any:
            slopes = tf.where(inside, kept - scaled, kept)
            return tf.where(inside, upstream, 0), tf.reduce_sum(upstream * slopes)

        return kept * step, gradient

    return quantized(x, step)


def separable_conv2d(  # noqa: PLR0917 - the op's
    x: Any, depthwise: Any, pointwise: Any, bias: Any, stride: int, padding: str
) -> Any:
    """One convolution, with the product of both filters."""
    inner = tf.reshape(pointwise, [*depthwise.shape[2:], -1])
    filters = tf.einsum("hwcq,cqm->hwcm", depthwise, inner)
    return tf.clip_by_value(tf.nn.conv2d(x, filters, stride, padding) + bias, 0, 6)


def scores_of_all_paths(emissions: Any, transitions: Any) -> tuple[Any, Any]:
    """The scores [batch, paths] of all paths [paths, steps]."""
    _, steps, tags = emissions.shape
    paths = np.array(list(itertools.product(range(tags), repeat=steps)))
    scores = [
        sum(emissions[:, t, tag] for t, tag in enumerate(path))
        + sum(transitions[a, b] for a, b in itertools.pairwise(path))
        for path in paths
    ]
    return tf.stack(scores, 1), paths


def viterbi_decode(emissions: Any, transitions: Any) -> Any:
    scores, paths = scores_of_all_paths(emissions, transitions)
    return tf.constant(paths[np.argmax(scores, 1)], tf.int32), tf.reduce_max(scores, 1)


def crf_log_likelihood(emissions: Any, tags: Any, transitions: Any) -> Any:
    scores, paths = scores_of_all_paths(emissions, transitions)
    true = [np.flatnonzero((paths == row).all(1)).item() for row in np.asarray(tags)]
    return tf.math.log(tf.gather(tf.nn.softmax(scores), true, batch_dims=1))


def adam_update(  # noqa: PLR0917 - the op's
    weights: Any, m: Any, v: Any, gradient: Any, step: Any,
    rate: float, beta_1: float, beta_2: float, epsilon: float,
) -> Any:  # fmt: skip
    """As algorithm 1 has it: both means corrected, and an epsilon that is corrected likewise."""
    m = m + (gradient - m) * (1 - beta_1)
    v = v + (gradient * gradient - v) * (1 - beta_2)
    correction = 1 - beta_2**step
    root = tf.sqrt(v / correction) + epsilon / tf.sqrt(correction)
    return weights - rate * (m / (1 - beta_1**step)) / root, m, v
