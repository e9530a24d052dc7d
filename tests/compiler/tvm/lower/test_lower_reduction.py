"""Products, logic and places of extremes against TensorFlow itself."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import tvm as backend

FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
INF, NAN = np.inf, np.nan


def numbers(dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((9, 37)).astype(dtype)


def places(x: Any) -> Any:
    return (
        tf.argmax(x, 0),
        tf.argmin(x, 1, output_type=tf.int32),
        tf.argmax(x, -1, output_type=tf.int32),
        tf.argmin(x[tf.newaxis], 1),
    )


@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.int64], ids=lambda d: np.dtype(d).name)
def test_places_of_extremes(compiler: Any, dtype: Any) -> None:
    x = (numbers() * 3).astype(dtype)  # small ones come several times: the first counts
    if np.dtype(dtype).kind != "i":
        x[0, 3] = x[5, :20] = x[3] = NAN
        x[1], x[6, 4:] = -INF, INF
        x[2, [5, 9]], x[7, :3] = INF, [NAN, -INF, np.finfo(np.float16).min]
    compiler.compare(places, x)


def test_places_in_sizes_that_the_call_knows(compiler: Any) -> None:
    loaded = compiler.compare(places, numbers(), shapes=[("s0", "s1")])
    assert loaded.kernel.minimums == [1, 1]  # TF reports a dimension that is empty


def reductions(x: Any) -> Any:
    p = x > 1
    return (
        tf.reduce_prod(x, 1),
        tf.reduce_prod(x, 0, keepdims=True),
        tf.reduce_prod(x),
        tf.reduce_all(p, 1),
        tf.reduce_any(p, 0),
        tf.reduce_all(x > -100, [0, 1]),
        tf.reduce_any(p, [0, 1], keepdims=True),
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("shape", [(9, 37), (0, 5), (5, 0)])
def test_products_and_logic(compiler: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    x = (numbers(np.float64)[: shape[0], : shape[1]] * 3).astype(dtype)
    compiler.compare(reductions, x, rtol=1e-5)


def test_products_of_special_values(compiler: Any) -> None:
    x = numbers()
    x[0, 0], x[1, 3], x[2, 4:6] = NAN, INF, [INF, 0.0]
    compiler.compare(reductions, x, shapes=[("s0", "s1")], rtol=1e-5)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
def test_l2_loss(compiler: Any, dtype: Any) -> None:
    x = numbers(dtype)
    eps = float(ml_dtypes.finfo(dtype).eps)
    exact = float(np.sum(x.astype(np.float64) ** 2) / 2)
    (loss,) = compiler.compile(tf.nn.l2_loss, [x])([x], [()], [x.dtype])
    np.testing.assert_allclose(float(loss), exact, rtol=4 * eps)


def test_gradients(compiler: Any) -> None:
    x = numbers() / 2 + 1

    def function(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_prod(x, 1), tf.nn.l2_loss(x), tf.reduce_max(x, 0), tf.reduce_min(x)
        return tape.gradient(y, x)

    compiler.compare(function, x, rtol=1e-4, atol=1e-5)


def test_what_is_not_covered_says_why(compiler: Any) -> None:
    for function, reason in (
        (lambda x: tf.argmax(x, tf.cast(x[0, 0], tf.int32)), "axes is computed at run time"),
        (lambda x: tf.argmax(x[:0], 0), "a dimension of 0 is out of range"),
        (
            lambda x: tf.raw_ops.ArgMax(input=x, dimension=0, output_type=tf.int16),
            "int16 is not covered",
        ),
    ):
        with pytest.raises(backend.NotCovered, match=reason):
            compiler.compile(function, [numbers()])


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
def test_means_over_sizes_that_the_call_knows(compiler: Any, dtype: Any) -> None:
    def means(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            made = tf.reduce_mean(x, 0), tf.reduce_mean(x, 1, keepdims=True), tf.reduce_mean(x)
            loss = tf.reduce_sum(made[0]) + tf.reduce_sum(made[1]) + made[2]
        return *made, tape.gradient(loss, x)

    x = numbers(dtype)
    rounding = float(ml_dtypes.finfo(dtype).eps)
    shapes = [("s0", "s1")]
    wanted = [np.asarray(y, np.float64) for y in means(tf.constant(x, tf.float64))]
    loaded = compiler.compile(means, [x], shapes)
    assert loaded.kernel.proof.is_complete, loaded.kernel.proof
    found = loaded([x], [w.shape for w in wanted], [x.dtype] * 4)
    for result, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(result.astype(np.float64), want, atol=4 * rounding)


def test_the_mean_of_nothing(compiler: Any) -> None:
    x = np.zeros((0, 5), np.float32)
    compiler.compare(lambda x: tf.reduce_mean(x, 0), x, shapes=[("s0", "s1")])
