"""Stages over rows: one kernel for all that is done to a row, right for every shape of rows."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

SHAPES = [(2, 1), (1, 2), (3, 5), (9, 7), (8, 8), (21, 10), (5, 16), (5, 37), (3, 1023), (2, 9000)]


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def softmax(x: Any) -> Any:
    e = tf.exp(x - tf.reduce_max(x, -1, keepdims=True))
    return e / tf.reduce_sum(e, -1, keepdims=True)


def log_softmax(x: Any) -> Any:
    z = x - tf.reduce_max(x, -1, keepdims=True)
    return z - tf.math.log(tf.reduce_sum(tf.exp(z), -1, keepdims=True))


def layer_norm(x: Any, scale: Any, offset: Any) -> Any:
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-5) * scale + offset


def cross_entropy(x: Any, labels: Any) -> Any:
    return -tf.reduce_sum(labels * log_softmax(x), -1)


def check_in_float64(
    compiler: Any, function: Any, arrays: list[np.ndarray], shapes: Any = None, atol: float = 2e-6
) -> Any:
    """Compare a kernel in float32 with TF in float64."""
    exact = tf.nest.flatten(function(*(tf.constant(a.astype(np.float64)) for a in arrays)))
    loaded = compiler.compile(function, arrays, shapes)
    wanted = [np.asarray(e) for e in exact]
    results = loaded(arrays, [w.shape for w in wanted], [arrays[0].dtype for _ in wanted])
    for result, want in zip(results, wanted, strict=True):
        np.testing.assert_allclose(result, want, rtol=2e-6, atol=atol)
    return loaded


@pytest.mark.parametrize("shape", SHAPES)
def test_bodies_over_rows_are_one_stage(compiler: Any, shape: tuple[int, int]) -> None:
    x, scale, offset = normal(*shape), normal(shape[1]), normal(shape[1])

    def function(x: Any, scale: Any, offset: Any) -> Any:
        return layer_norm(x, scale, offset), softmax(x * 3.0), cross_entropy(x, scale)

    # The variance of few elements may be small, and its root then magnifies the rounding of x.
    loaded = check_in_float64(compiler, function, [x, scale, offset], atol=4e-5)
    if shape[1] > 1:
        assert loaded.kernel.strategy == "rows"


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (1, 1), (3, 5), (20, 11), (2, 1000), (1, 40000)])
def test_symbolic_sizes(compiler: Any, shape: tuple[int, int]) -> None:
    x = normal(*shape)
    compiler.compare(
        lambda x: (softmax(x), tf.reduce_sum(x, -1), tf.reduce_max(x, -1, keepdims=True)),
        x, shapes=[("s0", "s1")], rtol=2e-5, atol=2e-6 * max(1, shape[1] ** 0.5),
    )  # fmt: skip


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0, 0)])
def test_nothing_to_do(compiler: Any, shape: tuple[int, int]) -> None:
    compiler.compare(lambda x: (softmax(x), tf.reduce_sum(x, -1)), normal(*shape))
