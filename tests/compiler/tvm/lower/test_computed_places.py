"""Slices and updates at places that are data, also wrong ones, against TensorFlow itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops as xla

from composite.compiler import tvm as backend
from composite.compiler.tvm.errors import NotCovered
from tests.compiler.tvm.conftest import library_of
from tests.compiler.tvm.lower.test_lower_gathering import refused

raw = tf.raw_ops
RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((5, 7, 20)).astype(np.float32)
X[1, 2, :3] = [np.nan, np.inf, -0.0]
OUTSIDE = [-(1 << 31), -8, -1, 0, 1, 4, 6, 7, 100, (1 << 31) - 1]


def at(*numbers: int, dtype: Any = np.int32) -> list[np.ndarray]:
    return [np.array(n, dtype) for n in numbers]


def slices(x: Any, i: Any, j: Any) -> Any:
    return (
        tf.slice(x, [i, 0, 0], [2, 7, 20]),
        tf.slice(x, [0, j, 3], [5, 1, 17]) * 2.0,
        tf.slice(tf.tanh(x), tf.stack([i, j, i + j]), [1, 2, 9]),
        tf.slice(x, [1, j, 0], [-1, 2, -1]),
        tf.slice(x, [0, j - 1, 0], [5, 1, 20]),
        x[i],
        x[:, j],
        x[..., i] + 1.0,
        x[i, 1:, j],
        x[1:4, i - 5, ::2],
        x[i - 3, j - 5, tf.newaxis],
    )


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_slices_that_begin_at_data(compiler: Any, dtype: Any) -> None:
    compiler.compare(slices, X, *at(2, 4, dtype=dtype), atol=1e-6)


def test_slices_of_sizes_that_the_call_knows(compiler: Any) -> None:
    def function(x: Any, i: Any) -> Any:
        rows = tf.shape(x)[0]
        return (
            tf.slice(x, [i, 0, 0], [1, 7, 20]),
            x[i],
            tf.slice(x, [0, i, 0], [rows, 2, 20]),
            tf.slice(tf.range(rows), [i], [1]),
        )

    compiler.compare(function, X, *at(3), shapes=[("s0", 7, 20), ()])


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16, np.int64, np.bool_])
def test_dtypes(compiler: Any, dtype: Any) -> None:
    x = RANDOM.integers(-9, 9, (5, 20)).astype(dtype)

    def function(x: Any, i: Any) -> Any:
        updated = xla.xla_dynamic_update_slice(x, x[1:3, 2:9], [i, i])
        return tf.slice(x, [i, i], [2, 9]), x[:, i], updated

    compiler.compare(function, x, *at(3))


WRONG: list[tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = [
    (lambda x, i: tf.slice(x, [i, 0, 0], [2, 7, 20]), (2, 7, 20), (-1, 4, 1 << 30)),
    (lambda x, i: tf.slice(x, [0, 0, i], [5, 7, 0]), (5, 7, 0), (-1, 21)),
    (lambda x, i: tf.slice(x, [i, 0, 0], [2, 7, 20])[:1, :2, :3], (1, 2, 3), (-1, 4)),
    (lambda x, i: x[i], (7, 20), (5, -6)),
    (lambda x, i: x[:, i] * 2.0, (5, 20), (7, -8)),
    (lambda x, i: tf.tensor_scatter_nd_update(x, [[i]], x[:1]), (5, 7, 20), (5, -1)),
    (
        lambda x, i: tf.tensor_scatter_nd_update(x[:1], [[i, 0]], x[:1, 0])[:, 1:2, :2],
        (1, 1, 2),
        (1, -1),
    ),
]


@pytest.mark.parametrize(("function", "shape", "wrong"), WRONG)
def test_a_wrong_place_fails_the_kernel(
    compiler: Any, function: Callable[..., Any], shape: tuple[int, ...], wrong: tuple[int, ...]
) -> None:
    loaded = compiler.compile(function, [X, *at(0)])
    assert not refused(loaded, [X, *at(0)], shape)
    for place in wrong:
        with pytest.raises(tf.errors.InvalidArgumentError):
            function(tf.constant(X), tf.constant(place))
        assert refused(loaded, [X, *at(place)], shape), place


def updates(x: Any, u: Any, i: Any, j: Any) -> Any:
    update = xla.xla_dynamic_update_slice
    return (
        update(x, u[:, :1], [0, i, 0]),
        update(x, u[:2, :1, :1], [i, j, i * j]) * 2.0,
        update(x, u[:, 1:4], [j, i, j]),
        update(x, u[:2, :3, :5], tf.stack([j, i, 15])),
        update(tf.tanh(x), tf.exp(u[:, :2]), [i, j, 0]),
        update(x, u, [i, i, j]),
        update(x, u[:0], [i, i, j]),
        update(x, u[:, :1], [0, 3, 0]),
        xla.xla_dynamic_slice(x, [i, j, 0], [2, 3, 20]),
        xla.xla_dynamic_slice(x, [i, j, j], [1, 7, 5]),
    )


@pytest.mark.parametrize("place", OUTSIDE)
def test_updates_are_moved_to_the_edge(compiler: Any, place: int) -> None:
    u = RANDOM.standard_normal(X.shape).astype(np.float32)
    compiler.compare(updates, X, u, *at(place, 3), atol=1e-6, rtol=1e-6)


def test_updates_of_sizes_that_the_call_knows(compiler: Any) -> None:
    def function(x: Any, u: Any, i: Any) -> Any:
        return (
            xla.xla_dynamic_update_slice(x, u, [i, 0, 0]),
            xla.xla_dynamic_update_slice(x, x[:, :1], [0, i, 0]),
        )

    u = RANDOM.standard_normal((1, 7, 20)).astype(np.float32)
    for place in (-1, 2, 9):
        compiler.compare(function, X, u, *at(place), shapes=[("s0", 7, 20), (1, 7, 20), ()])


def test_scattered_updates(compiler: Any) -> None:
    """Of two at one place the last one stays."""

    def function(x: Any, i: Any, j: Any) -> Any:
        scatter = tf.tensor_scatter_nd_update
        return (
            scatter(x, [[i]], x[:1] * 2.0),
            scatter(x, [[i, j], [j, i], [i, j]], x[0, :3]),
            scatter(x, [[[i, j, 1], [0, 0, j]]], x[:1, 0, :2]),
        )

    compiler.compare(function, X, *at(2, 3))
    compiler.compare(function, X, *at(2, 2))


def test_more_updates_are_left_to_tensorflow(compiler: Any) -> None:
    def function(x: Any, i: Any) -> Any:
        return tf.tensor_scatter_nd_update(x, i, x)

    i = np.arange(5, dtype=np.int32)[:, None]
    with pytest.raises(NotCovered, match="TensorScatterUpdate: 5 updates"):
        compiler.compile(function, [X, i])


def test_a_size_that_depends_on_the_begin_is_not_covered(compiler: Any) -> None:
    for function in (lambda x, i: tf.slice(x, [i, 0, 0], [-1, 7, 20]), lambda x, i: x[i:]):
        with pytest.raises(NotCovered, match="begin"):
            compiler.compile(function, [X, *at(1)])


def test_the_gradient_of_a_pick_lies_among_zeros(compiler: Any) -> None:
    def function(x: Any, i: Any, j: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(x[i] * x[i - 5]) + tf.reduce_sum(tf.square(x[:, j, 3]))
        return tape.gradient(y, x)

    compiler.compare(function, np.nan_to_num(X, posinf=1.0), *at(3, 2), rtol=1e-6)


def test_all_reads_are_proven() -> None:
    specs = [tf.TensorSpec([5, 7, 20]), tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.int32)]
    written = backend.write(library_of(slices, specs), [(5, 7, 20), (), ()])
    assert written.proof.is_complete, written.proof

    def same_place(x: Any, i: Any, j: Any) -> Any:
        return x[i], x[i, j]

    written = backend.write(library_of(same_place, specs), [(5, 7, 20), (), ()])
    assert written.proof.is_complete, written.proof
    written = backend.write(
        library_of(updates, [specs[0], *specs]), [(5, 7, 20), (5, 7, 20), (), ()]
    )
    assert written.proof.is_complete, written.proof
