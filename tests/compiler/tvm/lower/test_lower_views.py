"""Ops that move data against TensorFlow itself: parts, joins, pads, at known and unknown sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import tvm as backend

raw = tf.raw_ops
DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int32, np.int64, np.bool_]


def values(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    """Return numbers with NaN, infinities and negative zero among them."""
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "ib":
        return random.integers(-9, 9, shape).astype(dtype)
    drawn = random.standard_normal(shape)
    drawn.reshape(-1)[: drawn.size // 7] = random.choice([np.nan, np.inf, -np.inf, -0.0], 1)
    return drawn.astype(dtype)


def parts(x: Any) -> Any:
    return (
        x[1:, ::2],
        x[-1],
        x[..., ::-1],
        x[:, -5:, tf.newaxis, 1],
        x[:, 3:-3],
        x[::-2, 20:3:-4, 1:2],
        tf.slice(x, [1, 2, 0], [2, -1, 1]),
        tf.reverse(x, [0, -1]),
        tf.split(x, 3, 2),
        tf.split(x, [10, -1], 1),
        tf.unstack(x, axis=2),
    )


def copies(x: Any) -> Any:
    whole, first, truth = raw.IdentityN(input=[x, x[0], x > 0.5])
    return whole[::-1], first, truth


def joins(x: Any) -> Any:
    return (
        tf.concat([x, x[:1], x[:, ::-1]], 0),
        tf.concat([x, x[..., :1]], -1),
        tf.concat([x[:, :2], x, x[:, 5:]], 1),
        tf.stack([x, x], 0),
        tf.stack([x, x], -1),
    )


def pads(x: Any) -> Any:
    amounts = [[1, 2], [0, 3], [2, 1]]
    return (
        tf.pad(x, amounts),
        raw.PadV2(input=x, paddings=amounts, constant_values=tf.cast(1, x.dtype)),
        tf.pad(x, amounts, mode="REFLECT"),
        tf.pad(x, [[1, 2], [30, 0], [3, 3]], mode="SYMMETRIC"),
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_every_dtype(compiler: Any, dtype: Any) -> None:
    x = values((4, 33), dtype)

    def function(x: Any) -> Any:
        padded = raw.PadV2(input=x, paddings=[[1, 0], [2, 1]], constant_values=tf.cast(1, x.dtype))
        return padded, tf.concat([x[:, ::2], tf.reverse(x, [1])], 1)

    compiler.compare(function, x)


@pytest.mark.parametrize("function", [parts, copies, joins, pads], ids=lambda f: f.__name__)
def test_sizes_that_the_call_knows(compiler: Any, function: Callable[..., Any]) -> None:
    x = values((4, 33, 3))
    compiler.compare(function, x)
    compiler.compare(function, x, shapes=[("s0", "s1", 3)])


def test_long_rows(compiler: Any) -> None:
    x = values((3, 5, 61))
    compiler.compare(joins, x, shapes=[("s0", "s1", "s2")])
    compiler.compare(lambda x: pads(tf.transpose(x, [0, 2, 1])), x)


def test_parts_are_computed_where_they_are_read(compiler: Any) -> None:
    x = values((6, 40))

    def function(x: Any) -> Any:
        padded = tf.pad(tf.nn.relu(x), [[1, 1], [3, 2]], constant_values=-1.0)
        rotated = tf.concat([-x[:, 20:], x[:, :20]], 1)
        return (
            padded[:-2, :-5] + padded[2:, 5:] * 2.0,
            rotated * tf.concat([x, x], 0)[3:9],
            tf.reduce_max(padded, 1),
            tf.reduce_sum(tf.where(tf.math.is_finite(rotated), rotated, 0.0), 0),
        )

    compiled = compiler.compare(function, x, rtol=1e-6)
    stages = compiled.kernel.strategy.split("+")
    assert len(stages) == 3 and stages.count("elementwise") == 1


def test_products_read_slices_in_place(compiler: Any) -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((3, 20, 96)).astype(np.float32)
    w = random.standard_normal((40, 70)).astype(np.float32)

    def attention(x: Any) -> Any:
        q, k, v = tf.split(x, 3, axis=-1)
        return tf.matmul(tf.matmul(q, k, transpose_b=True), v)

    def inner(w: Any) -> Any:
        return tf.matmul(w[3:35, 5:60], w[:33, 7:62], transpose_b=True)

    def row(x: Any, w: Any) -> Any:
        return (
            tf.matmul(x[:, 7, 5:45], w),
            tf.matmul(x[:, -1:, 1:41], w),
            tf.matmul(x[0, ::-1], x[1], transpose_a=True),
        )

    stages = compiler.compare(attention, x, rtol=1e-4, atol=1e-3).kernel.strategy
    assert "elementwise" not in stages
    compiler.compare(inner, w, rtol=1e-4, atol=1e-4)
    stages = compiler.compare(row, x, w, rtol=1e-4, atol=1e-4).kernel.strategy
    assert "elementwise" not in stages


def test_a_product_is_sliced_after_its_epilogue(compiler: Any) -> None:
    random = np.random.default_rng(0)
    x, w = (random.standard_normal((16, 64)).astype(np.float32) for _ in range(2))

    def function(x: Any, w: Any) -> Any:
        i, f, g, o = tf.split(tf.matmul(x, w, transpose_b=True) + 1.0, 4, axis=1)
        return tf.sigmoid(i) * tf.tanh(g) + f * o

    compiler.compare(function, x, w, rtol=1e-4, atol=1e-4)


def test_dear_values_are_computed_once(compiler: Any) -> None:
    x = np.random.default_rng(0).standard_normal((100,)).astype(np.float32)

    def function(x: Any) -> Any:
        for _ in range(12):  # 2 ** 12 readings of each element if none were stored
            x = x[1:] * 0.5 + tf.tanh(x[:-1])
        return x

    compiler.compare(function, x, rtol=1e-5, atol=1e-6)


def test_nested_joins_do_not_double_the_code_without_end(compiler: Any) -> None:
    def function(x: Any) -> Any:
        for i in range(20):
            x = tf.concat([x + float(i), tf.zeros([2, 3])], 1)
        return x

    compiler.compare(function, values((2, 33)))


@pytest.mark.parametrize("size", [0, 1, 2])
def test_small_and_empty(compiler: Any, size: int) -> None:
    x = values((size, 3))

    def function(x: Any) -> Any:
        return x[1:], x[:-1], x[5:], x[::-1], tf.concat([x, x], 0), tf.pad(x, [[1, 0], [0, 2]])

    compiler.compare(function, x)


def test_sums_of_no_elements_that_were_repeated(compiler: Any) -> None:
    def function(x: Any) -> Any:
        none = tf.tile(x, [2, 0])
        return none / tf.reduce_sum(none, -1, keepdims=True), tf.reduce_sum(none, -1)

    compiler.compare(function, values((2, 3)))


def test_a_kernel_covers_only_the_sizes_it_is_right_for(compiler: Any) -> None:
    x = values((9, 40))
    loaded = compiler.compare(lambda x: x[3:, :-7] + x[-1, 7:], x, shapes=[("s0", "s1")])
    assert loaded.kernel.minimums == [3, 7]


def test_gradients(compiler: Any) -> None:
    x = np.random.default_rng(0).standard_normal((4, 12)).astype(np.float32)

    def function(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = (
                x[1:, ::2] ** 2,
                tf.pad(x, [[1, 1], [2, 0]]) ** 2,
                tf.pad(x, [[1, 1], [2, 0]], mode="REFLECT") ** 2,
                tf.concat([x, x * 3], 1) ** 2,
                tf.stack(tf.unstack(x), 1) ** 2,
                tf.reverse(tf.slice(x, [0, 1], [4, 5]), [1]) ** 2,
            )
        return tape.gradient(y, x)

    compiler.compare(function, x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x[tf.cast(x[0, 0], tf.int32) :], "begin is computed at run time"),
        (lambda x: tf.split(x, 2), "whether 2 divides size s0 is not known"),
        (lambda x: x[: tf.shape(x)[0] // 2], "end is computed at run time"),
        (lambda x: x[: tf.shape(x[0])[0] - tf.shape(x)[0]], "is in range is not known"),
        (lambda x: tf.stack([x] * 65), "65 tensors"),
    ],
)
def test_what_is_not_covered_says_why(compiler: Any, function: Any, reason: str) -> None:
    with pytest.raises(backend.NotCovered, match=reason):
        compiler.compile(function, [np.ones((4, 4), np.float32)], [("s0", 4)])
