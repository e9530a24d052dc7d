"""`composite.recognize` in functions: each op in several spellings, and attributes recovered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from tests.composite.recognition import recognized_ops as ops

ROWS = tf.TensorSpec([None, None, 8])
WIDTH = tf.TensorSpec([8])
HEADS = tf.TensorSpec([None, None, 2, 8])


def norm_of_moments(x: Any, gamma: Any, beta: Any) -> Any:
    mean, variance = tf.nn.moments(x, -1, keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)


def norm_by_sums(x: Any, gamma: Any, beta: Any) -> Any:
    moved = x - tf.reduce_sum(x, 2)[..., None] / 8.0
    variance = tf.reduce_mean(moved * moved, axis=2, keepdims=True)
    return beta + gamma * (moved / tf.sqrt(1e-6 + variance))


def norm_by_squares(x: Any, gamma: Any, beta: Any) -> Any:
    mean = tf.reduce_mean(x, -1)
    variance = tf.reduce_mean(x * x, -1) - mean**2
    factor = tf.expand_dims(1 / tf.sqrt(variance + 1e-5), -1)
    scale, offset = tf.reshape(gamma, [1, 1, 8]), tf.reshape(beta, [1, 1, 8])
    return (x - tf.expand_dims(mean, -1)) * factor * scale + offset


def norm_without_offset(x: Any, gamma: Any) -> Any:
    mean, variance = tf.nn.moments(x, -1, keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, None, gamma, 1e-4)


def gelu_by_power(x: Any) -> Any:
    return 0.5 * x * (1 + tf.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def gelu_multiplied(x: Any) -> Any:
    inner = x * 0.7978845608 * (1 + 0.044715 * x * x)
    return x * (tf.tanh(inner) * 0.5 + 0.5)


def swiglu_of_tensordots(x: Any, gate: Any, up: Any, down: Any) -> Any:
    gated = tf.tensordot(x, gate, 1)
    return tf.tensordot(tf.tensordot(x, up, 1) * (gated / (1 + tf.exp(-gated))), down, 1)


def swiglu_of_einsums(x: Any, gate: Any, up: Any, down: Any) -> Any:
    gated = tf.einsum("abc,cd->abd", x, gate)
    product = tf.sigmoid(gated) * gated * tf.einsum("abc,cd->abd", x, up)
    return tf.einsum("abd,dc->abc", product, down)


def loss_of_log_softmax(logits: Any, labels: Any) -> Any:
    return -tf.reduce_sum(labels * tf.nn.log_softmax(logits), -1)


def loss_made_stable(logits: Any, labels: Any) -> Any:
    moved = logits - tf.stop_gradient(tf.reduce_max(logits, -1, keepdims=True))
    logs = moved - tf.math.log(tf.reduce_sum(tf.exp(moved), -1, keepdims=True))
    return tf.reduce_sum(labels * -logs, axis=1)


def attention_by_matrices(query: Any, key: Any, value: Any) -> Any:
    query, key, value = (tf.transpose(x, [0, 2, 1, 3]) for x in (query, key, value))
    scores = tf.matmul(query, key, transpose_b=True) / tf.sqrt(8.0)
    scores -= tf.reduce_max(scores, -1, keepdims=True)
    weights = tf.exp(scores)
    weights /= tf.reduce_sum(weights, -1, keepdims=True)
    return tf.transpose(tf.matmul(weights, value), [0, 2, 1, 3])


def attention_behind_a_mask(query: Any, key: Any, value: Any, seen: Any) -> Any:
    scores = tf.einsum("bkhd,bqhd->bhqk", key, 8**-0.5 * query)
    scores = tf.where(tf.logical_not(seen), -1e9, scores)
    return tf.einsum("bhqk,bkhd->bqhd", tf.nn.softmax(scores, -1), value)


def attention_to_the_past(x: Any) -> Any:
    count = tf.shape(x)[1]
    scores = tf.einsum("bqhd,bkhd->bhqk", x, x) / 8**0.5
    past = tf.linalg.band_part(tf.ones([count, count], tf.bool), -1, 0)
    scores = tf.where(past, scores, -1e9)
    return tf.einsum("bhqk,bkhd->bqhd", tf.nn.softmax(scores), x)


def rotary_of_slices(x: Any, positions: Any) -> Any:
    frequencies = 1 / (5000.0 ** (tf.range(4, dtype=tf.float32) / 4))
    angles = tf.einsum("i,j->ij", tf.cast(positions, tf.float32), frequencies)
    sin, cos = tf.sin(angles)[None, :, None, :], tf.cos(angles)[None, :, None, :]
    left, right = x[..., :4], x[..., 4:]
    return tf.concat([left * cos - right * sin, left * sin + right * cos], -1)


def moments_of_columns(x: Any) -> Any:
    mean = tf.reduce_sum(x, 0) / 4
    return tf.reduce_mean(tf.math.squared_difference(x, mean), [0]), mean


WEIGHTS = [ROWS, tf.TensorSpec([8, 6]), tf.TensorSpec([8, 6]), tf.TensorSpec([6, 8])]
TABLE = tf.TensorSpec([None, 8])
SPELLINGS: list[tuple[Callable[..., Any], Any, list[Any], dict[str, Any], dict[str, float]]] = [
    (norm_of_moments, ops.layer_norm, [ROWS, WIDTH, WIDTH], {"epsilon": 0.001}, {}),
    (norm_by_sums, ops.layer_norm, [ROWS, WIDTH, WIDTH], {"epsilon": 1e-6}, {}),
    (norm_by_squares, ops.layer_norm, [ROWS, WIDTH, WIDTH], {"epsilon": 1e-5}, {}),
    (norm_without_offset, ops.layer_norm, [ROWS, WIDTH], {"epsilon": 1e-4}, {"beta": 0.0}),
    (
        lambda x: x / tf.sqrt(tf.reduce_mean(x**2, -1, keepdims=True) + 2e-6),
        ops.rms_norm,
        [ROWS],
        {"epsilon": 2e-6},
        {"gamma": 1.0},
    ),
    (lambda x: tf.tanh(tf.math.log(1 + tf.exp(x))) * x, ops.mish, [ROWS], {}, {}),
    (lambda x: x * tf.clip_by_value(x / 6 + 0.5, 0.0, 1.0), ops.hard_swish, [ROWS], {}, {}),
    (gelu_by_power, ops.gelu, [ROWS], {}, {}),
    (gelu_multiplied, ops.gelu, [ROWS], {}, {}),
    (swiglu_of_tensordots, ops.swiglu, WEIGHTS, {}, {}),
    (swiglu_of_einsums, ops.swiglu, WEIGHTS, {}, {}),
    (loss_of_log_softmax, ops.cross_entropy, [TABLE, TABLE], {}, {}),
    (loss_made_stable, ops.cross_entropy, [TABLE, TABLE], {}, {}),
    (attention_by_matrices, ops.attention, [HEADS] * 3, {"causal": False}, {}),
    (
        attention_behind_a_mask,
        ops.attention,
        [*[HEADS] * 3, tf.TensorSpec([None, 1, None, None], tf.bool)],
        {"causal": False},
        {},
    ),
    (attention_to_the_past, ops.attention, [HEADS], {"causal": True}, {}),
    (
        rotary_of_slices,
        ops.rotary,
        [tf.TensorSpec([None, 7, 2, 8]), tf.TensorSpec([7], tf.int32)],
        {"base": 5000.0},
        {},
    ),
    (moments_of_columns, ops.moments, [tf.TensorSpec([4, 8])], {"over": "COLUMNS"}, {}),
]


@pytest.mark.parametrize(
    ("body", "op", "specs", "attrs", "constants"),
    SPELLINGS,
    ids=[f"{k}-{one[1].__name__}" for k, one in enumerate(SPELLINGS)],
)
def test_a_spelling(
    body: Callable[..., Any],
    op: Any,
    specs: list[Any],
    attrs: dict[str, Any],
    constants: dict[str, float],
) -> None:
    function = tf.function(body).get_concrete_function(*specs)
    edited = composite.recognize(function, [op])
    (found,) = edited.report.recognized
    assert (found.op, found.constants) == (op.op_name, constants), str(edited.report)
    assert found.attrs == pytest.approx(attrs)
    assert edited.report.near_misses == ()
    nodes = [n for f in edited.graph_def.library.function for n in f.node_def]
    assert [n.op for n in nodes].count(op.op_name) == 1
    assert edited.report.outputs.skipped == ""
    random = np.random.default_rng(0)
    given = [
        tf.cast(random.standard_normal([n or 3 for n in one.shape]) * 3, one.dtype) for one in specs
    ]
    results = zip(*(tf.nest.flatten(one(*given)) for one in (edited, function)), strict=True)
    for y, z in results:
        np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-5)
