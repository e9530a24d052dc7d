"""Softmax and its losses against TensorFlow itself; narrow floats against float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

raw = tf.raw_ops
RANDOM = np.random.default_rng(0)


def logits(shape: tuple[int, ...] = (9, 37)) -> np.ndarray:
    return (RANDOM.standard_normal(shape) * 4).astype(np.float32)


def softmaxes(x: Any) -> Any:
    return (
        tf.nn.softmax(x),
        tf.nn.log_softmax(x),
        tf.nn.softmax(x, axis=0),
        tf.nn.log_softmax(x[tf.newaxis], axis=1) * 2.0,
    )


@pytest.mark.parametrize("shape", [(9, 37), (3, 5), (0, 4), (40, 1)])
def test_shapes(compiler: Any, shape: tuple[int, ...]) -> None:
    compiler.compare(softmaxes, logits(shape), rtol=1e-5, atol=1e-6)


def test_special_values(compiler: Any) -> None:
    x = logits()
    x[0, 3], x[1], x[2, 5], x[3, [2, 4]] = np.nan, -np.inf, -np.inf, np.inf
    x[4] = 3e38
    compiler.compare(softmaxes, x, shapes=[("s0", "s1")], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16])
def test_dtypes(compiler: Any, dtype: Any) -> None:
    x = logits().astype(dtype)
    exact = [np.asarray(y) for y in softmaxes(tf.constant(x.astype(np.float64)))]
    loaded = compiler.compile(softmaxes, [x])
    results = loaded([x], [y.shape for y in exact], [x.dtype] * 4)
    eps = float(ml_dtypes.finfo(dtype).eps)
    for result, want in zip(results, exact, strict=True):
        np.testing.assert_allclose(result.astype(np.float64), want, rtol=8 * eps, atol=4 * eps)


def cross_entropy(x: Any, labels: Any) -> Any:
    return tuple(raw.SoftmaxCrossEntropyWithLogits(features=x, labels=labels))


def test_cross_entropy(compiler: Any) -> None:
    x, labels = logits(), np.abs(logits())
    compiler.compare(cross_entropy, x, labels, rtol=1e-5, atol=2e-5)
    compiler.compare(cross_entropy, x, labels[:1], rtol=1e-5, atol=2e-5)
    compiler.compare(
        cross_entropy, x, labels, shapes=[("s0", 37), ("s0", 37)], rtol=1e-5, atol=2e-5
    )
    x[0, 3], x[1, 1], x[2, 5] = np.nan, -np.inf, np.inf
    compiler.compare(cross_entropy, x, np.eye(9, 37).astype(np.float32), rtol=1e-5, atol=1e-5)


def sparse_cross_entropy(x: Any, labels: Any) -> Any:
    return tuple(raw.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=labels))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_sparse_cross_entropy(compiler: Any, dtype: Any) -> None:
    x, labels = logits(), RANDOM.integers(0, 37, 9).astype(dtype)
    compiler.compare(sparse_cross_entropy, x, labels, rtol=1e-5, atol=1e-5)
    x[0, 3], x[1, 1], x[2, 5], x[3, labels[3]] = np.nan, -np.inf, np.inf, -np.inf
    compiler.compare(
        sparse_cross_entropy, x, labels, shapes=[("s0", "s1"), ("s0",)], rtol=1e-5, atol=1e-5
    )


def test_gradients(compiler: Any) -> None:
    x, labels = logits(), RANDOM.integers(0, 37, 9).astype(np.int32)

    def function(x: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = (
                tf.nn.softmax(x) ** 2,
                tf.nn.log_softmax(x) ** 2,
                tf.nn.softmax_cross_entropy_with_logits(tf.one_hot(labels, 37), x),
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x),
            )
        return tape.gradient(y, x)

    compiler.compare(function, x, labels, rtol=1e-4, atol=1e-4)
