"""Sums of many numbers whose mean is not zero: the error must not grow with how many there are.

Every kind of loop that adds up floats is here. The bound is a few hundred rounding errors: a chain
of additions has a block's length of them, and one chain of all would have thousands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

BOUND = 6e-6
"""Of the sum: a few dozen rounding errors of float32, where one chain has hundreds."""

Case = tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]


def _segments(x: Any, i: Any) -> Any:
    return tf.math.unsorted_segment_sum(x, tf.cast(i, tf.int32), 3)


SUMS: dict[str, Case] = {
    "columns": (lambda x: tf.reduce_sum(x, 0), ((300_000, 17),)),
    "few columns": (lambda x: tf.reduce_sum(x, 0), ((300_000, 3),)),
    "rows": (lambda x: tf.reduce_sum(x, 1), ((2, 300_000),)),
    "many short dimensions": (lambda x: tf.reduce_sum(x, (0, 1, 2)), ((400, 60, 10, 17),)),
    "outer and inner": (lambda x: tf.reduce_sum(x, (0, 2)), ((60_000, 3, 5),)),
    "outer and long inner": (lambda x: tf.reduce_sum(x, (0, 2)), ((3000, 2, 100),)),
    "unmerged rows": (
        lambda x: tf.reduce_sum(tf.transpose(x, (2, 0, 1)), (1, 2)),
        ((9000, 20, 2),),
    ),
    "bias gradient": (lambda x: tf.raw_ops.BiasAddGrad(out_backprop=x), ((300_000, 16),)),
    "running sum of columns": (lambda x: tf.cumsum(x, 0), ((200_000, 16),)),
    "running sum of rows": (lambda x: tf.cumsum(x, 1, reverse=True), ((2, 200_000),)),
    "running sum without the last": (lambda x: tf.cumsum(x, 0, exclusive=True), ((200_000, 1),)),
    "segments": (_segments, ((300_000, 16), (300_000,))),
    "pool": (lambda x: tf.nn.avg_pool2d(x, 400, 1, "VALID"), ((1, 400, 400, 16),)),
}
PRODUCTS: dict[str, Case] = {
    "tile": (tf.matmul, ((16, 32_768), (32_768, 64))),
    "tile of rows": (lambda a, b: tf.matmul(a, b, transpose_b=True), ((64, 32_768), (64, 32_768))),
    "tile, short epilogue": (lambda a, b: tf.nn.relu(tf.matmul(a, b)), ((96, 8192), (8192, 64))),
    "tile of transposed": (
        lambda a, b: tf.matmul(a, b, transpose_a=True),
        ((32_768, 64), (32_768, 64)),
    ),
    "axpy": (tf.matmul, ((1, 32_768), (32_768, 64))),
    "axpy of four": (tf.matmul, ((4, 32_768), (32_768, 64))),
    "dots": (lambda a, b: tf.matmul(a, b, transpose_b=True), ((2, 131_072), (32, 131_072))),
    "few columns": (tf.matmul, ((3, 32_768), (32_768, 3))),
    "convolution": (
        lambda x, w: tf.nn.conv2d(x, w, 1, "VALID"),
        ((1, 16, 16, 256), (16, 16, 256, 16)),
    ),
    "depthwise convolution": (
        lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "VALID"),
        ((1, 150, 150, 16), (150, 150, 16, 1)),
    ),
}


@pytest.mark.parametrize(("function", "shapes"), SUMS.values(), ids=SUMS)
def test_sums(compiler: Any, function: Callable[..., Any], shapes: Any) -> None:
    _check(compiler, function, [np.full(shape, 0.1, np.float32) for shape in shapes])


@pytest.mark.parametrize(("function", "shapes"), PRODUCTS.values(), ids=PRODUCTS)
def test_products(compiler: Any, function: Callable[..., Any], shapes: Any) -> None:
    _check(compiler, function, [np.full(shape, 0.1, np.float32) for shape in shapes])


@pytest.mark.parametrize("kind", ["columns", "few columns", "running sum of columns", "segments"])
def test_sizes_that_the_call_says(compiler: Any, kind: str) -> None:
    function, shapes = SUMS[kind]
    arrays = [np.full(shape, 0.1, np.float32) for shape in shapes]
    _check(compiler, function, arrays, [("s0", *shape[1:]) for shape in shapes])


@pytest.mark.parametrize("kind", ["tile", "tile of rows", "few columns"])
def test_products_of_a_depth_that_the_call_says(compiler: Any, kind: str) -> None:
    function, (a, b) = PRODUCTS[kind]
    shapes = [tuple("s0" if d == a[1] else d for d in shape) for shape in (a, b)]
    _check(compiler, function, [np.full(shape, 0.1, np.float32) for shape in (a, b)], shapes)


def _check(compiler: Any, function: Any, arrays: list[np.ndarray], shapes: Any = None) -> None:
    expected = function(*(tf.constant(x, tf.float64) for x in arrays)).numpy()
    loaded = compiler.compile(function, arrays, shapes)
    (found,) = loaded(arrays, [expected.shape], [np.dtype(np.float32)])
    error = np.max(np.abs(found - expected) / np.maximum(np.abs(expected), 0.05))
    assert error < BOUND


def test_a_running_sum_of_numbers_that_are_not_negative_never_falls(compiler: Any) -> None:
    x = np.random.default_rng(0).uniform(0, 1, (5000, 8)).astype(np.float32) ** 8
    for axis in (0, 1):
        given = x if axis == 0 else np.ascontiguousarray(x.T)
        loaded = compiler.compile(lambda x, axis=axis: tf.cumsum(x, axis), [given])
        (found,) = loaded([given], [given.shape], [given.dtype])
        assert (np.diff(found, axis=axis) >= 0).all()


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
def test_infinities_stay(compiler: Any, special: float) -> None:
    x = np.ones((500, 20), np.float32)
    x[100, 3] = x[490, 4] = special
    x[499, 4] = -special
    with np.errstate(invalid="ignore"):
        compiler.compare(lambda x: (tf.reduce_sum(x, 0), tf.cumsum(x, 0)), x)
        compiler.compare(lambda x: tf.math.unsorted_segment_sum(x, tf.range(500) % 2, 2), x)
