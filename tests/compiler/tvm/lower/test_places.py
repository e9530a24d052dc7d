"""Ranges, bands and diagonals of matrices, and rolls against TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm import NotCovered

raw = tf.raw_ops
X = np.arange(1, 61, dtype=np.float32).reshape(3, 4, 5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "bounds",
    [(0, 1000, 1), (0.1, 50, 0.1), (-1, 1, 0.003), (5, -2, -0.7), (0, 1, 0.1), (3, 3, 2)],
)
def test_ranges_of_floats(compiler: Any, bounds: Any, dtype: Any) -> None:
    def function(x: Any) -> Any:
        start, limit, step = (tf.constant(b, dtype) for b in bounds)
        return x * raw.Range(start=start, limit=limit, delta=step)

    loaded = compiler.compare(function, np.ones(1, dtype))
    assert loaded.kernel.proof.is_complete


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_ranges_as_long_as_a_size(compiler: Any, dtype: Any) -> None:
    def size(x: Any) -> Any:
        return tf.shape(x, out_type=dtype)[0]

    for function in (
        lambda x: tf.range(size(x)) * 2,
        lambda x: tf.cast(tf.range(size(x)), x.dtype)[:, None] * x[:, 0],
        lambda x: tf.cast(tf.range(size(x))[:, None] >= tf.range(size(x)), x.dtype),
        lambda x: tf.range(-2, size(x)),
        lambda x: tf.range(0, size(x) * 3, 3),
        lambda x: tf.range(size(x), size(x) * 3, 2),
    ):
        loaded = compiler.compare(function, X, shapes=[("s0", 4, 5)])
        assert loaded.kernel.proof.is_complete, loaded.kernel.proof
    loaded = compiler.compare(lambda x: tf.range(3, size(x)), X, shapes=[("s0", 4, 5)])
    assert loaded.kernel.minimums == [3]


@pytest.mark.parametrize("bands", [(0, 0), (-1, 0), (0, -1), (1, 2), (-1, -1), (3, 5), (4, 1)])
def test_bands(compiler: Any, bands: tuple[int, int]) -> None:
    def function(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.linalg.band_part(x, *bands)
            loss = tf.reduce_sum(y * y)
        return y, tape.gradient(loss, x)

    loaded = compiler.compare(function, np.where(X == 7, np.nan, X).astype(np.float32))
    assert loaded.kernel.proof.is_complete
    compiler.compare(function, X, shapes=[("s0", "s1", "s2")])


@pytest.mark.parametrize("dtype", [np.int32, np.bool_, np.uint8])
def test_bands_of_other_dtypes(compiler: Any, dtype: Any) -> None:
    compiler.compare(
        lambda x: raw.MatrixBandPart(input=x, num_lower=1, num_upper=0), X.astype(dtype)
    )


@pytest.mark.parametrize(
    ("shift", "axis"), [(1, 0), (-1, 2), (7, 1), (0, 0), ([1, -2], [0, 2]), ([1, 2], [1, 1])]
)
def test_rolls(compiler: Any, shift: Any, axis: Any) -> None:
    def function(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.roll(x, shift, axis)
            loss = tf.reduce_sum(y * tf.reshape(tf.range(60.0), [3, 4, 5]))
        return y, tape.gradient(loss, x)

    loaded = compiler.compare(function, X)
    assert loaded.kernel.proof.is_complete


def test_rolls_of_sizes_that_the_call_knows(compiler: Any) -> None:
    for shift in (2, -2):
        loaded = compiler.compare(
            lambda x, by=shift: tf.roll(x, by, 0), X, shapes=[("s0", "s1", "s2")]
        )
        assert loaded.kernel.minimums == [2, 0, 0]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: tf.range(tf.shape(x)[0], delta=2), "Range: steps of 2 to an unknown size"),
        (lambda x: raw.Range(start=0.0, limit=1.0, delta=x[0, 0, 0]), "bounds is computed at run"),
        (lambda x: tf.roll(x, tf.cast(x[0, 0, 0], tf.int32), 0), "its shift is computed at run"),
        (lambda x: tf.linalg.band_part(x, tf.shape(x)[0], 0), "band depends on an unknown size"),
    ],
)
def test_refused(compiler: Any, function: Any, reason: str) -> None:
    with pytest.raises(NotCovered, match=reason):
        compiler.compile(function, [X], [("s0", "s1", "s2")])


@pytest.mark.parametrize("k", [0, 1, -2, 4, -3])
def test_diagonals(compiler: Any, k: int) -> None:
    def function(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.linalg.diag_part(x, k=k)
            loss = tf.reduce_sum(y * y * y)
        others = tf.linalg.set_diag(x * 2.0, y * y, k=k)
        return y, tape.gradient(loss, x), tf.linalg.diag(y, k=k), others

    loaded = compiler.compare(function, np.where(X == 7, np.nan, X).astype(np.float32))
    assert loaded.kernel.proof.is_complete, loaded.kernel.proof


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int32, np.int64, np.bool_, np.uint8])
def test_diagonals_of_any_dtype(compiler: Any, dtype: Any) -> None:
    x = (np.arange(32).reshape(2, 4, 4) % 3).astype(dtype)

    def function(x: Any) -> Any:
        y = tf.linalg.diag_part(x)
        return y, tf.linalg.diag(y), tf.linalg.set_diag(x, y[::-1])

    compiler.compare(function, x)


def test_diagonals_of_square_matrices_of_any_size(compiler: Any) -> None:
    def contrast(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            logits = tf.matmul(x, y, transpose_b=True)
            loss = tf.reduce_logsumexp(logits, -1) - tf.linalg.diag_part(logits)
        return loss, tape.gradient(loss, [x, y]), tf.linalg.trace(logits)

    x, y = np.random.default_rng(0).uniform(-1, 1, (2, 9, 4)).astype(np.float32)
    for shapes in (None, [("s0", 4)] * 2):
        compiler.compare(contrast, x, y, shapes=shapes, rtol=1e-5, atol=1e-5)


def test_diagonals_of_given_sizes(compiler: Any) -> None:
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    for sizes in ({"num_rows": 5}, {"num_cols": 4}, {"num_rows": 3, "num_cols": 7}):
        compiler.compare(lambda x, of=sizes: tf.linalg.diag(x, padding_value=9.0, **of), x)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: tf.linalg.diag_part(x, k=(-1, 1)), "MatrixDiagPartV3: several diagonals"),
        (lambda x: tf.linalg.diag_part(x, k=1), "diagonal 1 of matrices of s0 x 5, not known now"),
        (lambda x: tf.linalg.diag_part(x, k=tf.cast(x[0, 0, 0], tf.int32)), "its k"),
    ],
)
def test_diagonals_that_no_kernel_covers(compiler: Any, function: Any, reason: str) -> None:
    with pytest.raises(NotCovered, match=reason):
        compiler.compare(function, X, shapes=[(3, "s0", 5)])
