"""The largest elements of rows against TensorFlow: values, places, ties, and their gradient."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import tvm as backend
from tests.compiler.tvm.conftest import library_of

FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]


@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.int64])
def test_dtypes(compiler: Any, dtype: Any) -> None:
    x = np.random.default_rng(2).uniform(-99, 99, (33, 21)).astype(dtype)
    compiler.compare(lambda x: tf.math.top_k(x, 2), x)


@pytest.mark.parametrize("k", [1, 5])
def test_numbers_of_elements(compiler: Any, k: int) -> None:
    x = np.random.default_rng(k).uniform(-99, 99, (33, 21)).astype(np.float32)
    compiler.compare(lambda x: tf.math.top_k(x, k), x)


@pytest.mark.parametrize("shape", [(8,), (3, 8), (2, 3, 9), (0, 9), (5, 64), (70, 130)])
def test_shapes(compiler: Any, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    k = 8 if len(shape) == 1 else 4  # at most what a row has
    compiler.compare(lambda x: tf.math.top_k(x, k), x)
    compiler.compare(
        lambda x: tf.math.top_k(x, 3, index_type=tf.int64),
        x,
        shapes=[[f"s{i}" for i in range(len(shape))]],
    )


def test_the_first_of_equal_elements_comes_first(compiler: Any) -> None:
    random = np.random.default_rng(0)
    x = random.choice([1.0, 2.0, -np.inf, np.inf, 3.0], (50, 9)).astype(np.float32)
    x[0], x[1] = -np.inf, np.inf
    compiler.compare(lambda x: tf.math.top_k(x, 4), x)
    least = np.full((4, 5), np.iinfo(np.int32).min, np.int32)
    compiler.compare(lambda x: tf.math.top_k(x, 3), least)


def test_places_are_those_of_what_tensorflow_rounds(compiler: Any) -> None:
    x = np.random.default_rng(0).choice(np.arange(-8, 8, 0.125), (40, 50)).astype(np.float16)
    compiler.compare(lambda x: tf.math.top_k(x * 0.001 + 1.0, 4), x)


def test_what_is_made_of_them(compiler: Any) -> None:
    def gate(x: Any) -> Any:
        values, places = tf.math.top_k(x, 2)
        chosen = tf.one_hot(places, x.shape[-1])
        return tf.reduce_sum(tf.nn.softmax(values)[..., None] * chosen, -2)

    x = np.random.default_rng(0).standard_normal((37, 16)).astype(np.float32)
    compiler.compare(gate, x, rtol=1e-6)


def test_the_gradient(compiler: Any) -> None:
    def function(x: Any, dy: Any) -> Any:
        return tf.gradients(tf.math.top_k(x, 3)[0], x, dy)[0]

    random = np.random.default_rng(0)
    x, dy = random.standard_normal((9, 11)), random.standard_normal((9, 3))
    compiler.compare(tf.function(function), x, dy)


def test_a_nan_fails_the_kernel(compiler: Any) -> None:
    x = np.random.default_rng(0).standard_normal((9, 11)).astype(np.float32)
    loaded = compiler.compile(lambda x: tf.math.top_k(x, 2), [x])
    shapes, dtypes = [(9, 2)] * 2, [np.dtype(np.float32), np.dtype(np.int32)]
    loaded([x], shapes, dtypes)
    x[4, 7] = np.nan
    with pytest.raises(AssertionError, match="refused"):
        loaded([x], shapes, dtypes)


@pytest.mark.parametrize(
    ("function", "match"),
    [
        (lambda x: tf.math.top_k(x, 9), "k of 9"),
        (lambda x: tf.math.top_k(x, tf.cast(x[0, 0], tf.int32)), "k"),
        (lambda x: tf.math.top_k(x, 2, index_type=tf.int16), "int16"),
        (lambda x: tf.math.top_k(x, 2, sorted=False), "sorted=False"),
    ],
)
def test_not_covered(function: Any, match: str) -> None:
    with pytest.raises(backend.NotCovered, match=match):
        backend.compile(library_of(function, [tf.TensorSpec((4, 30))]), [(4, 30)])
