"""Integers of all widths, which kernels move, compare and cast, against TensorFlow."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm import NotCovered

WIDTHS = [np.int8, np.int16, np.uint8, np.uint16, np.uint32, np.uint64]
INTEGERS = [*WIDTHS, np.int32, np.int64]
FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]


def samples(dtype: Any, count: int = 67) -> np.ndarray:
    random = np.random.default_rng(2)
    info = np.iinfo(dtype)
    edges = np.array([0, 1, info.max, info.min, info.max - 1], dtype)
    drawn = random.integers(info.min, info.max, count - 5, dtype, endpoint=True)
    return np.concatenate([edges, drawn])


@pytest.mark.parametrize("source", INTEGERS, ids=lambda d: d.__name__)
def test_casts_of_integers(compiler: Any, source: Any) -> None:
    targets = [t for t in (*INTEGERS, np.bool_) if t is not source]
    loaded = compiler.compare(lambda x: [tf.cast(x, t) for t in targets], samples(source))
    assert loaded.kernel.proof.is_complete


@pytest.mark.parametrize("source", WIDTHS, ids=lambda d: d.__name__)
def test_casts_to_floats(compiler: Any, source: Any) -> None:
    x = samples(source)
    for target in FLOATS:
        rounding = float(ml_dtypes.finfo(target).eps)
        compiler.compare(lambda x, to=target: tf.cast(x, to), x, rtol=rounding)


@pytest.mark.parametrize(
    ("source", "target"),
    list(itertools.product(FLOATS, [np.int8, np.int16, np.uint8, np.uint16])),
    ids=lambda d: d.__name__,
)
def test_casts_of_floats(compiler: Any, source: Any, target: Any) -> None:
    info = np.iinfo(target)
    x = np.concatenate([np.linspace(info.min, info.max, 97), [0.9, 1.5, 2.5, 100.99]])
    x = x.astype(source)
    inside = x[(x.astype(np.float64) >= info.min) & (x.astype(np.float64) <= info.max)]
    compiler.compare(lambda x: tf.cast(x, target), inside)


@pytest.mark.parametrize("source", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("count", [1, 64])
def test_casts_of_floats_that_do_not_fit(compiler: Any, source: Any, count: int) -> None:
    """As in TensorFlow's vectors, whose elements many equal ones are; wherever they lie here."""
    targets = [np.int8, np.int16, np.uint8, np.uint16, np.int32, np.int64]
    numbers = [np.nan, np.inf, -np.inf, 3e9, -3e9, 3e19, 7e4, -7e4, 300, -130, -1.5, 127.9, 255.5]
    with np.errstate(over="ignore"):
        x = np.array(numbers).astype(source)

    def casts(x: Any) -> list[Any]:
        return [tf.cast(x * 1, target) for target in targets]

    wanted = zip(*(casts(tf.fill([64], tf.constant(one))) for one in x), strict=True)
    loaded = compiler.compile(casts, [np.repeat(x, count)])
    shapes = [(x.size * count,)] * len(targets)
    found = loaded([np.repeat(x, count)], shapes, [*map(np.dtype, targets)])
    for result, ones in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(result, np.repeat([one[0] for one in ones], count))


def test_a_nan_among_rows_of_one_is_cast_as_any_other(compiler: Any) -> None:
    x = np.array([np.nan], np.float16)
    compiler.compare(lambda x: tf.cast(tf.reduce_max(x, -1, keepdims=True), tf.int32), x)


@pytest.mark.parametrize("dtype", WIDTHS, ids=lambda d: d.__name__)
def test_moves_and_comparisons(compiler: Any, dtype: Any) -> None:
    def function(x: Any, y: Any) -> Any:
        return (
            tf.where(x < y, x, y),
            x == y,
            x >= y,
            tf.concat([x[3:], tf.constant([7, 9], dtype)], 0),
            tf.gather(tf.reshape(x, [1, -1]), [5, 0, 5], axis=1),
            tf.zeros_like(x),
            tf.one_hot([1, 3], 4, on_value=tf.constant(5, dtype), off_value=tf.constant(0, dtype)),
        )

    x = samples(dtype)
    y = np.where(np.arange(x.size) % 3 == 0, x, x[::-1])
    compiler.compare(function, x, y)


def test_pixels(compiler: Any) -> None:
    x = samples(np.uint8, 5 * 6 * 3).reshape(5, 6, 3)
    compiler.compare(
        lambda x: (tf.cast(x, tf.float32) / 255.0 - 0.5) * 2.0,
        x,
        shapes=[("s0", "s1", 3)],
        rtol=1e-6,
    )


def test_refused(compiler: Any) -> None:
    x = np.zeros(3, np.uint8)
    with pytest.raises(NotCovered, match="AddV2: dtype uint8"):
        compiler.compile(lambda x: x + x, [x])
    with pytest.raises(NotCovered, match="Cast: float32 to uint32"):
        compiler.compile(lambda x: tf.cast(x, tf.uint32), [x.astype(np.float32)])
