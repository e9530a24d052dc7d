"""Attention on a GPU made of threads: one launch, whatever the logits are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.gpu.shim.cases import BFLOAT16, Batch, Case, written


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = tf.matmul(q, k, transpose_b=True)
    return tf.matmul(tf.nn.softmax(scores * tf.cast(0.25, q.dtype)), v)


def masked(q: Any, k: Any, v: Any) -> Any:
    """With rows of which the first piece, or everything, is masked; the softmax is written out."""
    scores = tf.matmul(q, k, transpose_b=True) * tf.cast(0.2, q.dtype)
    rows, columns = tf.range(tf.shape(q)[0]), tf.range(tf.shape(k)[0])
    mask = (rows[:, None] != 3) & (columns[None, :] >= 20)
    x = tf.where(mask, scores, tf.cast(-np.inf, q.dtype))
    power = tf.exp(x - tf.reduce_max(x, -1, keepdims=True))
    return tf.nn.relu(tf.matmul(power / tf.reduce_sum(power, -1, keepdims=True), v) + 1.0)


def causal_heads(q: Any, k: Any, v: Any) -> Any:
    """Heads that lie side by side in a row, before and after."""
    rows = tf.shape(q)[1]
    q, k, v = (tf.transpose(tf.reshape(x, [2, -1, 2, 24]), [0, 2, 1, 3]) for x in (q, k, v))
    scores = tf.einsum("bhqd,bhkd->bhqk", q, k) * tf.cast(0.2, q.dtype)
    before = tf.range(rows)[:, None] >= tf.range(rows)[None, :]
    x = tf.cast(tf.where(before, scores, tf.cast(-1e4, q.dtype)), tf.float32)
    return tf.matmul(tf.cast(tf.nn.softmax(x), v.dtype), v)


CASES = {
    "attention_half": Case(
        attention, [[2, "s0", 16], [2, "s1", 16], [2, "s1", 16]], "attention",
        dtypes=[np.float16], runs=[{"s0": m, "s1": n} for m, n in ((3, 0), (3, 1), (70, 150))],
        atol=2e-3,
    ),
    "attention_float": Case(
        attention, [["s0", 32], [80, 32], [80, 40]], "attention", runs=[{"s0": 65}],
        tensor_float_32=True, atol=1e-2,
    ),
    "attention_masked": Case(
        masked, [["s0", 16], ["s1", 16], ["s1", 16]], "attention", dtypes=[np.float16],
        runs=[{"s0": 5, "s1": 40}], atol=2e-3, choices={"0.attention.keys": 16},
    ),
    "attention_deep": Case(
        attention, [["s0", 128], [64, 128], [64, 128]], "attention", runs=[{"s0": 7}],
        tensor_float_32=True, atol=2e-2,
    ),
    "attention_large": Case(  # logits of 1e36
        attention, [["s0", 16], [24, 16], [24, 16]], "attention", dtypes=[BFLOAT16],
        runs=[{"s0": 9}], rtol=0.02, atol=0.0, scale=1e18,
    ),
    "attention_causal": Case(
        causal_heads, [[2, "s0", 48]] * 3, "attention", dtypes=[BFLOAT16],
        runs=[{"s0": 70}], atol=3e-2,
    ),
    "attention_wide": Case(
        attention, [[64, 128], [128, 128], [128, 128]], "attention", dtypes=[np.float16], atol=4e-3,
        choices={"0.attention.keys": 16},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results(batch: Batch, name: str) -> None:
    batch.check(name)


def of(function: Any, **case: Any) -> str:
    shapes = case.pop("shapes", [[64, 16], [80, 16], [80, 16]])
    return written("a", Case(function, shapes, "", **{"dtypes": [np.float16], **case})).strategy


def test_only_an_attention_of_numbers_that_tensor_cores_multiply_is_one_launch() -> None:
    def also_returned(q: Any, k: Any, v: Any) -> Any:
        share = tf.nn.softmax(tf.matmul(q, k, transpose_b=True))
        return tf.matmul(share, v), share

    def of_the_share(q: Any, k: Any, v: Any) -> Any:
        share = tf.nn.softmax(tf.matmul(q, k, transpose_b=True))
        return tf.matmul(tf.square(share), v)

    def of_columns(q: Any, k: Any, v: Any) -> Any:
        x = tf.matmul(q, k, transpose_b=True)
        power = tf.exp(x - tf.reduce_max(x, -1, keepdims=True))
        return tf.matmul(power / tf.reduce_sum(power, -1), v)  # of each column

    def less_columns(q: Any, k: Any, v: Any) -> Any:
        x = tf.matmul(q, k, transpose_b=True)
        power = tf.exp(x - tf.reduce_max(x, -1))
        return tf.matmul(power / tf.reduce_sum(power, -1, keepdims=True), v)

    def and_scores(q: Any, k: Any, v: Any) -> Any:
        scores = tf.matmul(q, k, transpose_b=True)
        return tf.matmul(tf.nn.softmax(scores), v) + scores

    square = [[64, 64]] * 3
    assert of(attention, shapes=square) == "attention"
    assert of(attention, shapes=[[64, 16], [80, 16], [3, 80, 16]]) != "attention"
    for other in (of_columns, less_columns, and_scores):
        assert "attention" not in of(other, shapes=square)
    assert of(attention) == "attention"
    parts = "tensor_product+rows+tensor_product"
    assert of(also_returned) == of(of_the_share) == parts
    assert of(attention, shapes=[[64, 160], [80, 160], [80, 160]]) == parts
    assert of(attention, dtypes=[np.float32]) == "tiled_product+rows+tiled_product"
