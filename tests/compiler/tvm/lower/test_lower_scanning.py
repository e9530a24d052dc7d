"""Running sums against TensorFlow itself: along any dimension, both ways."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import tvm as backend

raw = tf.raw_ops


def numbers(shape: tuple[int, ...] = (9, 37), dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(0).uniform(-2, 2, shape).astype(dtype)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_directions(compiler: Any, exclusive: bool, reverse: bool) -> None:
    def function(x: Any) -> Any:
        how = {"exclusive": exclusive, "reverse": reverse}
        return (
            tf.cumsum(x, 0, **how) * 2.0,
            tf.cumsum(x, 1, **how),
            tf.math.cumprod(x, 0, **how),
            tf.math.cumprod(x, -1, **how) + x,
            raw.CumulativeLogsumexp(x=x, axis=0, **how),
            raw.CumulativeLogsumexp(x=x, axis=1, **how),
        )

    compiler.compare(function, numbers(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(3, 5, 6), (2, 0, 5), (4, 3, 20), (33, 1, 1)])
def test_shapes(compiler: Any, shape: tuple[int, ...]) -> None:
    def function(x: Any) -> Any:
        return tf.cumsum(x, 0), tf.cumsum(x, 1), tf.cumsum(x, 2, reverse=True)

    x = (numbers(shape) * 10).astype(np.int32)
    compiler.compare(function, x)
    compiler.compare(function, x, shapes=[("s0", "s1", "s2")])


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.int64])
def test_dtypes(compiler: Any, dtype: Any) -> None:
    x = numbers(dtype=np.float64) * (1e6 if dtype == np.int32 else 1e15)
    compiler.compare(
        lambda x: (tf.cumsum(x, 1), tf.cumsum(x, 0), tf.math.cumprod(x, 0)),
        x.astype(dtype), rtol=1e-12, atol=1e-3,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_summed_in_float32(compiler: Any, dtype: Any) -> None:
    x = numbers(dtype=dtype)
    (y,) = compiler.compile(lambda x: tf.cumsum(x, 1), [x])([x], [x.shape], [x.dtype])
    exact = np.cumsum(x.astype(np.float64), 1).astype(dtype)
    np.testing.assert_allclose(y.astype(np.float64), exact.astype(np.float64), atol=1e-4, rtol=1e-2)


def test_special_values(compiler: Any) -> None:
    x = numbers()
    x[0, 3], x[1, 5:7], x[2, 5] = np.nan, [np.inf, -np.inf], -np.inf
    compiler.compare(lambda x: (tf.cumsum(x, 0), tf.math.cumprod(x, 1)), x, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_sums_of_exponentials_lose_nans_as_tensorflows(compiler: Any, dtype: Any) -> None:
    def function(x: Any) -> Any:
        one, two = (raw.CumulativeLogsumexp(x=x, axis=a, reverse=a == 1) for a in (0, 1))
        return one, two, raw.CumulativeLogsumexp(x=x, axis=1, exclusive=True)

    some = [np.nan, np.inf, -np.inf, 0.5, -1.0]
    x = np.random.default_rng(0).choice(some, (80, 37), p=[0.2, 0.1, 0.3, 0.2, 0.2]).astype(dtype)
    x[:40] = np.where(x[:40] == np.inf, 2.0, x[:40])  # an infinity ends in NaNs
    tolerance = 1e-5 if dtype == np.float32 else 0.1  # TensorFlow rounds each sum
    compiler.compare(function, x, rtol=tolerance, atol=1e-6)


def test_what_follows_is_computed_in_the_same_loops(compiler: Any) -> None:
    loaded = compiler.compare(
        lambda x: tf.nn.relu(tf.cumsum(x * x, 1) - 3.0), numbers(), rtol=1e-5, atol=1e-5
    )
    assert loaded.kernel.strategy == "scan"


def test_large_work_is_shared_out(compiler: Any) -> None:
    x = numbers((300, 3000))
    loaded = compiler.compare(lambda x: (tf.cumsum(x, 0), tf.cumsum(x, 1)), x, rtol=1e-4, atol=1e-4)
    assert loaded.launches


def test_gradients(compiler: Any) -> None:
    def function(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.cumsum(x, 1) ** 2, tf.math.cumprod(x, 0), tf.math.cumulative_logsumexp(x, 1)
        return tape.gradient(y, x)

    compiler.compare(function, numbers((5, 7)) + 3, rtol=1e-4, atol=1e-3)


def test_what_is_not_covered_says_why(compiler: Any) -> None:
    with pytest.raises(backend.NotCovered, match="axis is computed at run time"):
        compiler.compile(lambda x: tf.cumsum(x, tf.cast(x[0, 0], tf.int32)), [numbers()])
