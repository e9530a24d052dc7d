"""Reductions over any dimensions, with what is element-wise around them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tests import draws

AXES = [c for n in range(1, 4) for c in combinations(range(3), n)]


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("shape", [(5, 9, 17), (3, 4, 5), (1, 40, 1), (2, 0, 3)])
def test_any_axes(compiler: Any, axes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
    compiler.compare(
        lambda x: (tf.reduce_sum(x, axes), tf.reduce_sum(x * x, axes, keepdims=True) + 1.0),
        x, rtol=1e-5, atol=1e-5,
    )  # fmt: skip


@pytest.mark.parametrize("axis", [0, 1])
def test_symbolic(compiler: Any, axis: int) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (9, 21)).astype(np.float32)
    compiler.compare(
        lambda x: tf.reduce_sum(x, axis), x, shapes=[("s0", "s1")], rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16, np.int32, np.int64])
def test_dtypes(compiler: Any, dtype: Any) -> None:
    x = np.random.default_rng(0).integers(-5, 5, (7, 30)).astype(dtype)
    compiler.compare(lambda x: (tf.reduce_sum(x, 0), tf.reduce_sum(x, 1)), x)


def test_integers_wrap(compiler: Any) -> None:
    x = np.full((4, 10), np.iinfo(np.int64).max, np.int64)
    compiler.compare(lambda x: (tf.reduce_sum(x, 0), tf.reduce_sum(x, 1)), x)


@pytest.mark.parametrize("reduce", [tf.reduce_max, tf.reduce_min])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32, np.int64])
@pytest.mark.parametrize("shape", [(5, 9, 17), (2, 0, 3), (3, 4, 5)])
def test_other_reductions(compiler: Any, reduce: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(-300, 300, shape).astype(dtype)
    compiler.compare(lambda x: (reduce(x, 0), reduce(x, [1, 2], keepdims=True), reduce(x)), x)


@pytest.mark.parametrize("axis", [0, 1])
def test_extremes_of_nan_and_infinity(compiler: Any, axis: int) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (19, 21)).astype(np.float32)
    x[3, 2] = x[18, 20] = np.nan
    x[5, :] = -np.inf
    x[:, 6] = np.inf
    compiler.compare(lambda x: (tf.reduce_max(x, axis), tf.reduce_min(x, axis)), x)


@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_of_its_parts(compiler: Any, axis: int) -> None:
    x = np.random.default_rng(0).uniform(-90, 90, (13, 37)).astype(np.float32)

    def softmax(x: Any) -> Any:
        e = tf.exp(x - tf.reduce_max(x, axis, keepdims=True))
        return e / tf.reduce_sum(e, axis, keepdims=True)

    compiler.compare(softmax, x, rtol=1e-5, atol=1e-6)
    compiler.compare(softmax, x, shapes=[("s0", "s1")], rtol=1e-5, atol=1e-6)


def test_large_sums_are_shared_out(compiler: Any) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (1600, 1700)).astype(np.float32)
    for axis in (0, 1):
        loaded = compiler.compare(
            lambda x, axis=axis: tf.reduce_sum(x, axis), x, rtol=1e-4, atol=1e-4
        )
        assert loaded.launches == 1


def test_bias_gradient_and_mean(compiler: Any) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (6, 4, 10)).astype(np.float32)
    compiler.compare(
        lambda x: (tf.raw_ops.BiasAddGrad(out_backprop=x), tf.reduce_mean(x, -1)),
        x, rtol=1e-5, atol=1e-6,
    )  # fmt: skip


def test_the_mean_of_nothing_is_nan(compiler: Any) -> None:
    x = np.zeros((3, 0), np.float32)
    compiler.compare(lambda x: tf.reduce_mean(x, -1), x)
    compiler.compare(lambda x: tf.reduce_sum(x - tf.reduce_mean(x, 1, keepdims=True), 1), x)


def test_gradient_of_a_broadcast_product(compiler: Any) -> None:
    """What TF's gradient of Mul emits: shapes, BroadcastGradientArgs, Sum, Reshape."""
    x = np.random.default_rng(0).uniform(-1, 1, (5, 8)).astype(np.float32)
    b = np.random.default_rng(1).uniform(-1, 1, (8,)).astype(np.float32)

    def function(x: Any, b: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, b])
            y = tf.tanh(x * b)
        return tape.gradient(y, [x, b])

    compiler.compare(function, x, b, rtol=1e-5, atol=1e-5)
    compiler.compare(function, x, b, shapes=[("s0", 8), (8,)], rtol=1e-5, atol=1e-5)


def test_backward_of_a_dense_layer(compiler: Any) -> None:
    random = np.random.default_rng(0)
    x, w, b = (random.uniform(-1, 1, s).astype(np.float32) for s in [(9, 12), (7, 12), (7,)])

    def function(x: Any, w: Any, b: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, w, b])
            y = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w, transpose_b=True), b))
        return tape.gradient(y, [x, w, b])

    compiler.compare(function, x, w, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("channels", [1, 3, 4, 7, 15])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16, np.int32])
def test_narrow_columns(compiler: Any, channels: int, dtype: Any) -> None:
    """Whole vectors of rows and channels, a last one that overlaps, and several images."""
    x = np.random.default_rng(0).integers(-9, 9, (3, 5, 37, channels)).astype(dtype)
    compiler.compare(
        lambda x: (
            tf.reduce_sum(x * x, [1, 2]),
            tf.reduce_max(x, 1),
            tf.reduce_min(x, [0, 2], keepdims=True),
            tf.reduce_sum(x, 0),
        ),
        x,
    )


@pytest.mark.parametrize("rows", [2, 11, 300])
def test_narrow_columns_of_any_length(compiler: Any, rows: int) -> None:
    x, y = np.random.default_rng(0).uniform(-1, 1, (2, 4, rows, 3)).astype(np.float32)

    def dice(x: Any, y: Any) -> Any:
        p = tf.sigmoid(x)
        return tf.reduce_sum(p * y, [0, 1]) / (tf.reduce_sum(p + y, [0, 1]) + 9.0)

    compiler.compare(dice, x, y, shapes=[("s0", "s1", 3)] * 2, rtol=1e-5, atol=1e-6)


def test_narrow_columns_of_what_is_scaled_by_column(compiler: Any) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (2, 40, 3)).astype(np.float32)
    compiler.compare(
        lambda x: tf.reduce_sum(tf.exp(x * [1.0, 2.0, 3.0]), [0, 1]), x, rtol=1e-5, atol=1e-5
    )


def test_columns_of_several_dimensions(compiler: Any) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (3, 21, 5, 9)).astype(np.float32)
    b = np.random.default_rng(1).uniform(-1, 1, (5, 1)).astype(np.float32)
    compiler.compare(
        lambda x, b: (tf.reduce_sum(x, 1) * 2.0, tf.reduce_sum(x * b, 1), tf.reduce_max(x, [1, 3])),
        x, b, rtol=1e-5, atol=1e-5,
    )  # fmt: skip


@given(
    shape=st.lists(st.sampled_from([1, 2, 3, 4, 7, 16, 17, 33]), min_size=2, max_size=4),
    reduced=st.integers(1, 15), repeated=st.integers(0, 15), known=st.booleans(),
)  # fmt: skip
@draws.kernels(30)
def test_what_broadcasts_under_any_dimensions(
    compiler: Any, *, shape: list[int], reduced: int, repeated: int, known: bool
) -> None:
    """The bits of `reduced` and `repeated` choose dimensions."""
    rank = len(shape)
    axes = [i for i in range(rank) if reduced >> i & 1]
    scales = [1 if repeated >> i & 1 else d for i, d in enumerate(shape)]
    random = np.random.default_rng(0)
    x, y, scale = (random.uniform(0.5, 1, s).astype(np.float32) for s in (shape, shape, scales))

    def function(x: Any, y: Any, scale: Any) -> Any:
        total = tf.reduce_sum(x * y, axes)
        scaled = tf.reduce_sum(x + y * scale, axes)
        return total / (scaled + 1.0), scaled, tf.reduce_max(x * scale, axes, keepdims=True)

    names = {d: f"s{d}" for d in shape if d % 2}
    varying = [tuple(names.get(d, d) if d > 1 else d for d in s) for s in (shape, shape, scales)]
    shapes = None if known else varying
    compiler.compare(function, x, y, scale, shapes=shapes, rtol=1e-5, atol=1e-5)
