"""Gathers and scatters against TensorFlow itself, and what a kernel does with a wrong index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import tvm as backend
from tests.compiler.tvm.conftest import library_of

raw = tf.raw_ops
RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((7, 50, 3)).astype(np.float32)
X[1, 2] = [np.nan, np.inf, -0.0]
I = RANDOM.integers(0, 3, (4, 5)).astype(np.int32)  # noqa: E741


def gathers(x: Any, i: Any) -> Any:
    return (
        tf.gather(x, i),
        tf.gather(x, i, axis=1) * 2.0,
        tf.gather(x, i, axis=-1),
        tf.gather(x[:4], i, axis=1, batch_dims=1),
        tf.gather_nd(x, i[:, :1]),
        tf.gather_nd(x, i[:, :2]),
        tf.gather_nd(x, i[:, :3]) + 1.0,
    )


def test_gathers(compiler: Any) -> None:
    compiler.compare(gathers, X, I)
    compiler.compare(gathers, X, I.astype(np.int64), shapes=[("s0", 50, 3), (4, 5)])


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16, np.int64, np.bool_])
def test_dtypes(compiler: Any, dtype: Any) -> None:
    x = RANDOM.integers(-9, 9, (5, 20)).astype(dtype)
    compiler.compare(lambda x, i: (tf.gather(x, i), tf.gather(x, i, axis=1)), x, I)


def test_sizes_that_the_call_knows(compiler: Any) -> None:
    x = RANDOM.standard_normal((11, 24)).astype(np.float32)
    compiler.compare(
        lambda x, i: (tf.gather(tf.tanh(x), i), tf.gather(x, i, axis=1)), x, I,
        shapes=[("s0", "s1"), ("s2", "s3")], atol=1e-6,
    )  # fmt: skip


def test_indices_that_are_known_or_computed(compiler: Any) -> None:
    def function(x: Any) -> Any:
        best = tf.argmax(x[:, :, 0], axis=1, output_type=tf.int32)
        return (
            tf.gather(x, [2, 0, 2]),
            tf.gather(x, tf.range(tf.shape(x)[0])),
            tf.gather(x, best, axis=1, batch_dims=1),
            tf.concat([x, tf.gather(x, [1])], 0),
        )

    compiler.compare(function, np.nan_to_num(X))


def test_one_hot(compiler: Any) -> None:
    i = np.array([[0, 4, -1], [5, 2, 1 << 30]], np.int32)

    def function(i: Any) -> Any:
        return (
            tf.one_hot(i, 5),
            tf.one_hot(i, 20, axis=0, on_value=3, off_value=7),
            tf.one_hot(i, 5, axis=1, dtype=tf.bool, on_value=False, off_value=True),
            tf.one_hot(tf.cast(i, tf.int64), 0),
        )

    compiler.compare(function, i)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_scatter_into_a_tensor(compiler: Any, dtype: Any) -> None:
    """At places that are there several times, too."""
    x = RANDOM.integers(-9, 9, (7, 5)).astype(dtype)
    i = np.array([[0], [3], [0], [5], [3], [3]], np.int32)
    u = RANDOM.integers(-9, 9, (6, 5)).astype(dtype)

    def function(x: Any, i: Any, u: Any) -> Any:
        pairs = tf.concat([i, i[::-1] % 5], 1)
        return (
            tf.tensor_scatter_nd_add(x * 2, i, u),
            tf.tensor_scatter_nd_sub(x, i, u) + 1,
            tf.tensor_scatter_nd_add(x, pairs, u[:, 0]),
        )

    compiler.compare(function, x, i, u)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_one_hot_of_narrow_integers(compiler: Any, dtype: Any) -> None:
    """A depth beyond the dtype has places that no index equals."""
    i = np.array([[0, 4, 100], [5, 2, 127]], dtype)
    i[0, 2] = dtype(-3 if dtype == np.int8 else 253)
    compiler.compare(lambda i: (tf.one_hot(i, 5), tf.one_hot(i, 300, axis=0)), i)


def test_gather_by_narrow_integers(compiler: Any) -> None:
    i = np.array([[0, 2], [1, 2]], np.int16)
    compiler.compare(lambda x, i: tf.gather(x, i) * 2.0, X, i)


def refused(loaded: Any, arrays: list[np.ndarray], shape: tuple[int, ...]) -> bool:
    """Return whether the kernel reports an error; the host then runs the expansion."""
    try:
        loaded(arrays, [shape], [np.dtype(np.float32)])
    except AssertionError as error:
        return "refused" in str(error)
    return False


WRONG = [
    (tf.gather, (4, 5, 50, 3), (7, -1)),
    (lambda x, i: tf.gather(x, i, axis=2), (7, 50, 4, 5), (3, -1)),
    (lambda x, i: tf.gather(x, i)[1:2, :1], (1, 1, 50, 3), (7, -1)),
    (lambda x, i: tf.gather(tf.gather(x, i), [1]), (1, 5, 50, 3), (7, -1)),
    (lambda x, i: tf.gather_nd(x, i[:, :2]), (4, 3), (50, -1)),
    # A negative number belongs to no segment.
    (lambda x, i: tf.math.unsorted_segment_sum(x[:4, :5], i, 3), (3, 3), (3,)),
    (lambda x, i: tf.math.unsorted_segment_max(x[:4, :5], i, 3), (3, 3), (3,)),
    (lambda x, i: tf.scatter_nd(i[:, :1], x[:4], [7, 50, 3]), (7, 50, 3), (7, -1)),
    (lambda x, i: raw.SparseSoftmaxCrossEntropyWithLogits(
        features=x[:5, :8, 0], labels=i[3])[1], (5, 8), (8, -1)),
]  # fmt: skip


@pytest.mark.parametrize(("function", "shape", "wrong"), WRONG)
def test_a_wrong_index_fails_the_kernel(
    compiler: Any, function: Callable[..., Any], shape: tuple[int, ...], wrong: tuple[int, ...]
) -> None:
    loaded = compiler.compile(function, [X, I])
    assert not refused(loaded, [X, I], shape)
    for index in wrong:
        i = I.copy()
        i[3, 0] = index
        with pytest.raises(tf.errors.InvalidArgumentError):
            function(tf.constant(X), tf.constant(i))
        assert refused(loaded, [X, i], shape)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32, np.int64])
def test_scatters(compiler: Any, dtype: Any) -> None:
    x = RANDOM.integers(-9, 9, (9, 37)).astype(dtype)
    segments = np.array([0, 3, -1, 3, 2, 2, 0, 9, 4], np.int32)
    places = RANDOM.integers(0, 4, (9, 2))

    def function(x: Any, segments: Any, places: Any) -> Any:
        return (
            tf.math.unsorted_segment_sum(x, segments, 10) * 2,
            tf.math.unsorted_segment_sum(x[:, 0], segments, 10),
            tf.scatter_nd(places, x, [5, 4, 37]),
            tf.scatter_nd(places[:, :1], x[:, 0], [6]),
        )

    compiler.compare(function, x, segments, places)
    compiler.compare(
        function, x, segments, places, shapes=[("s0", 37), ("s0",), ("s0", 2)], tasks=2
    )


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int64])
def test_extremes_and_products_of_segments(compiler: Any, dtype: Any) -> None:
    """Segments without rows, of infinities, and with NaN, which the next row takes the place of."""
    x = RANDOM.integers(-3, 4, (9, 37)).astype(dtype)
    if np.dtype(dtype).kind != "i":
        x[0, :9], x[3, :4], x[5, 2:7], x[8, :3] = np.nan, np.inf, np.nan, -np.inf
        x[4] = -np.inf
    segments = np.array([0, 3, -1, 3, 2, 0, 0, 9, 4], np.int32)

    def function(x: Any, segments: Any) -> Any:
        return (
            tf.math.unsorted_segment_max(x, segments, 10),
            tf.math.unsorted_segment_min(x, segments, 10) * 2,
            tf.math.unsorted_segment_prod(x, segments, 10),
            tf.math.unsorted_segment_max(x[:, 1], segments, 10),
        )

    shapes = [("s0", 37), ("s0",)]
    loaded = compiler.compare(function, x, segments, shapes=shapes, tasks=2)
    assert loaded.kernel.proof.is_complete, loaded.kernel.proof


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("width", [5, 37, 200, 1001])
@pytest.mark.parametrize("dtype", [tf.int64, tf.float32])
def test_no_task_writes_columns_of_another(dtype: Any, width: int, level: str) -> None:
    """Whatever the level's vectors: their number in a row decides where tasks begin."""

    def function(x: Any, segments: Any) -> Any:
        return tf.math.unsorted_segment_max(x, segments, 10)

    specs = [tf.TensorSpec([None, width], dtype), tf.TensorSpec([None], tf.int32)]
    shapes = [("s0", width), ("s0",)]
    written = backend.write(library_of(function, specs), shapes, target=backend.Target.of(level, 2))
    assert written.proof.is_complete, written.proof


def test_sums_of_narrow_floats_are_rounded_once(compiler: Any) -> None:
    x = RANDOM.integers(-200, 200, (600, 20)).astype(ml_dtypes.bfloat16)
    segments = RANDOM.integers(0, 30, 600).astype(np.int32)

    def function(x: Any, segments: Any) -> Any:
        return tf.math.unsorted_segment_sum(x, segments, 30)

    exact = np.zeros((30, 20))
    np.add.at(exact, segments, x.astype(np.float64))
    rounded = exact.astype(x.dtype)
    for shapes in (None, [("s0", 20), ("s0",)]):
        loaded = compiler.compile(function, (x, segments), shapes)
        (found,) = loaded((x, segments), [rounded.shape], [x.dtype])
        np.testing.assert_array_equal(found, rounded)


def test_gradients_of_segments(compiler: Any) -> None:
    x = RANDOM.integers(-3, 4, (9, 16)).astype(np.float32)
    segments = np.array([0, 3, -1, 3, 2, 2, 0, 4, 0], np.int32)

    def function(x: Any, i: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = [
                tf.math.unsorted_segment_max(x, i, 5) ** 2,
                tf.math.unsorted_segment_min(x, i, 5) ** 2,
                tf.math.unsorted_segment_prod(x, i, 5),
                tf.math.unsorted_segment_mean(x, i, 5) ** 2,
            ]
        return tape.gradient(y, x)

    compiler.compare(function, x, segments, rtol=1e-5, atol=1e-5)


def test_gradients(compiler: Any) -> None:
    x = RANDOM.standard_normal((9, 16)).astype(np.float32)

    def function(x: Any, i: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = (
                tf.gather(x, i) ** 2,
                tf.gather(x, i, axis=1) ** 2,
                tf.gather(x[:4], i, batch_dims=1) ** 2,
                tf.gather_nd(x, i[:, :2]) ** 2,
            )
        return tf.convert_to_tensor(tape.gradient(y, x))

    compiler.compare(function, x, I, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x, i: tf.gather(x, i, axis=i[0, 0]), "axis is computed at run time"),
        (lambda x, i: tf.one_hot(i, i[0, 0]), "depth is computed at run time"),
    ],
)
def test_what_is_not_covered_says_why(compiler: Any, function: Any, reason: str) -> None:
    with pytest.raises(backend.NotCovered, match=reason):
        compiler.compile(function, [X, I])
