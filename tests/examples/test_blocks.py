"""The building blocks: each in every way it can run, beside TensorFlow's own, and in training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import composite
from examples.blocks import ops
from examples.blocks.model import Transformer, accuracy, composites, plain, train
from examples.digits.ops import fused_fully_connected

pytestmark = [pytest.mark.many_cases, pytest.mark.usefixtures("kernels_win")]

RANDOM = np.random.default_rng(7)


def normal(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


X, GAMMA, BETA = normal(2, 3, 8), normal(8), normal(8)
LABELS = RANDOM.integers(0, 8, (2, 3))
DISTRIBUTIONS = tf.nn.softmax(normal(2, 3, 8)).numpy()
MLP = [normal(5, 8), normal(8, 16), normal(16), normal(16, 4), normal(4)]
QUERY, KEY, VALUE = normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 6)
MASK = np.array([[1, 1, 0, 1, 0], [0, 0, 1, 1, 1], [1, 0, 0, 0, 0]], bool)
SEED = np.array([1, 2], np.int32)
LARGE = 1e4 * X  # the exponentials of which are infinite

CALLS: list[tuple[Any, list[Any], dict[str, Any]]] = [
    *((fused_fully_connected, [normal(4, 5), normal(3, 5), normal(3)], {"act": act})
      for act in ("", "RELU", "RELU6", "TANH")),
    (ops.fused_layer_norm, [X, GAMMA, BETA], {}),
    (ops.fused_rms_norm, [X, GAMMA], {"epsilon": 1e-3}),
    (ops.fused_softmax, [X], {}),
    (ops.fused_sparse_cross_entropy, [X, LABELS], {}),
    (ops.fused_cross_entropy, [X, DISTRIBUTIONS], {}),
    *((ops.fused_gelu_mlp, MLP, {"approximate": value}) for value in (False, True)),
    (ops.fused_attention, [QUERY, KEY, VALUE, MASK], {}),
    *((ops.fused_bias_dropout_residual, [X, BETA, -X, SEED], {"rate": r}) for r in (0.0, 0.25)),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call[0].op_name}-{call[2]}")
def test_every_way_agrees(call: tuple[Any, list[Any], dict[str, Any]], tmp_path: Any) -> None:
    op, inputs, attrs = call
    report = composite.check(op, *inputs, **attrs, samples=1, report_dir=tmp_path)
    notes = {row.way: row.note for row in report.rows if row.note}
    assert notes == {}


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS[4:], ids=lambda call: f"{call[0].op_name}-{call[2]}")
def test_other_dtypes_and_special_values(
    call: tuple[Any, list[Any], dict[str, Any]], tmp_path: Any
) -> None:
    op, inputs, attrs = call
    composite.check(op, *inputs, **attrs, ways=["eager", "gradient", "kernel"], report_dir=tmp_path)


def attention(query: Any, key: Any, value: Any, mask: Any) -> Any:
    """Keras has a head axis before the last."""
    inputs = (x[:, :, None] for x in (query, key, value))
    return keras.ops.nn.dot_product_attention(*inputs, mask=mask[None, None])[:, :, 0]


THEIRS: list[tuple[Any, list[Any], Callable[..., Any]]] = [
    (ops.fused_layer_norm, [X, GAMMA, BETA],
     lambda x, g, b: keras.ops.layer_normalization(x, g, b, epsilon=1e-5)),
    (ops.fused_rms_norm, [X, GAMMA], lambda x, g: keras.ops.rms_normalization(x, g, epsilon=1e-6)),
    *((ops.fused_softmax, [x], tf.nn.softmax) for x in (X, LARGE)),
    *((ops.fused_sparse_cross_entropy, [x, LABELS],
       lambda x, y: tf.nn.sparse_softmax_cross_entropy_with_logits(y, x)) for x in (X, LARGE)),
    *((ops.fused_cross_entropy, [x, DISTRIBUTIONS],
       lambda x, y: tf.nn.softmax_cross_entropy_with_logits(y, x)) for x in (X, LARGE)),
    (ops.fused_gelu_mlp, MLP, lambda x, w, b, v, c: tf.nn.gelu(x @ w + b) @ v + c),
    (ops.fused_attention, [QUERY, KEY, VALUE, MASK], attention),
]  # fmt: skip


@pytest.mark.parametrize("call", THEIRS, ids=lambda call: call[0].op_name)
def test_beside_tensorflow_and_keras(call: tuple[Any, list[Any], Callable[..., Any]]) -> None:
    op, arrays, theirs = call
    inputs = [tf.constant(x) for x in arrays]
    floats = [x for x in inputs if x.dtype.is_floating]
    results = []
    for function in (op, theirs):
        with composite.options(backend="tf"), tf.GradientTape() as tape:
            tape.watch(floats)
            y = function(*inputs)
        weights = tf.random.stateless_normal(y.shape, [0, 1])
        results.append([y, *tape.gradient(y, floats[:1], weights)])
    for ours, expected in zip(*results, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)


def test_what_a_mask_hides_has_no_weight() -> None:
    hidden = np.where(np.any(MASK, axis=0, keepdims=True).T, VALUE, 0).astype(np.float32)
    all_hidden = np.zeros_like(MASK)
    np.testing.assert_array_equal(
        ops.fused_attention(QUERY, KEY, VALUE, MASK), ops.fused_attention(QUERY, KEY, hidden, MASK)
    )
    seen = ops.fused_attention(QUERY, KEY, VALUE, all_hidden)
    mean = np.broadcast_to(VALUE.mean(1, keepdims=True), seen.shape)
    np.testing.assert_allclose(seen, mean, rtol=1e-5)


def test_dropout_drops_its_rate_and_the_same_in_the_gradient() -> None:
    x = tf.ones([1000, 8])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = ops.fused_bias_dropout_residual(x, tf.zeros(8), x, SEED, rate=0.25)
    kept = y.numpy() > 1
    np.testing.assert_allclose(y, np.where(kept, 1 + 1 / 0.75, 1), rtol=1e-6)
    np.testing.assert_allclose(tape.gradient(y, x), y)
    assert abs(kept.mean() - 0.75) < 0.02


@pytest.mark.slow
def test_a_transformer_of_them_learns() -> None:
    model = Transformer(composites)
    with composite.options(backend="tf"):
        losses = train(model, steps=110)
    np.testing.assert_allclose(losses[:60], train(Transformer(plain), steps=60), rtol=1e-3)
    assert accuracy(model) > 0.95
    graph = tf.function(lambda t: model.loss(t, [0, 0])).get_concrete_function(
        tf.TensorSpec([4, 16], tf.int32)
    )
    ours = sorted(op.type for op in graph.graph.get_operations() if op.type.startswith("Fused"))
    assert ours == [
        "FusedAttention", "FusedBiasDropoutResidual", "FusedGeluMlp", "FusedLayerNorm",
        "FusedRmsNorm", "FusedRmsNorm", "FusedSparseCrossEntropy",
    ]  # fmt: skip
