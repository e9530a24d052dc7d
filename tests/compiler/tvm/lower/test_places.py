"""Ranges, bands of matrices and rolls against TensorFlow."""

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
