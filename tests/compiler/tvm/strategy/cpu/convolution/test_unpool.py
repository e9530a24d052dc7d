"""Gradients of pools against TF's."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tests import draws

SIZES = st.sampled_from([1, 2, 3, 5, 8, 13])


def gradient(op: str, size: tuple[int, int], strides: tuple[int, int], padding: str) -> Any:
    """The gradient as a function of the image; windows get different numbers."""
    options = {"ksize": [1, *size, 1], "strides": [1, *strides, 1], "padding": padding}

    def function(x: Any, dy: Any) -> Any:
        if op == "AvgPoolGrad":
            dx = tf.raw_ops.AvgPoolGrad(orig_input_shape=tf.shape(x), grad=dy, **options)
        else:
            y = tf.raw_ops.MaxPool(input=x, **options)
            dx = tf.raw_ops.MaxPoolGrad(orig_input=x, orig_output=y, grad=dy, **options)
        return dx * 0.5

    return function


def operands(
    shape: tuple[int, ...], size: Any, strides: Any, padding: str, dtype: Any = np.float32
) -> list[np.ndarray]:
    random = np.random.default_rng(sum(shape))
    x = random.integers(-3, 3, shape).astype(dtype)  # with elements that are equally large
    y = tf.raw_ops.AvgPool(value=x, ksize=[1, *size, 1], strides=[1, *strides, 1], padding=padding)
    return [x, random.uniform(-1, 1, y.shape).astype(dtype)]


@given(
    op=st.sampled_from(["MaxPoolGrad", "AvgPoolGrad"]), size=st.tuples(SIZES, SIZES),
    channels=st.sampled_from([1, 3, 8, 17]), window=st.tuples(st.integers(1, 3), st.integers(1, 4)),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    padding=st.sampled_from(["SAME", "VALID"]), tasks=st.sampled_from([1, 3]),
)  # fmt: skip
@draws.kernels(25)
def test_any_shape(
    compiler: Any, *, op: str, size: Any, channels: int, window: Any, strides: Any,
    padding: str, tasks: int,
) -> None:  # fmt: skip
    if padding == "VALID":
        window = tuple(min(w, s) for w, s in zip(window, size, strict=True))
    arrays = operands((2, *size, channels), window, strides, padding)
    function = gradient(op, window, strides, padding)
    loaded = compiler.compare(function, *arrays, rtol=1e-5, atol=1e-6, tasks=tasks)
    assert loaded.kernel.strategy == "unpool"


@pytest.mark.parametrize("op", ["MaxPoolGrad", "AvgPoolGrad"])
def test_batch_of_any_size(compiler: Any, op: str) -> None:
    function = gradient(op, (2, 2), (2, 2), "SAME")
    x, dy = operands((30, 20, 20, 16), (2, 2), (2, 2), "SAME")
    loaded = compiler.compile(function, [x, dy], [("s0", 20, 20, 16), ("s0", 10, 10, 16)])
    for images in (0, 1, 30):
        expected = np.asarray(function(tf.constant(x[:images]), tf.constant(dy[:images])))
        (result,) = loaded([x[:images], dy[:images]], [expected.shape], [x.dtype])
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    assert loaded.launches >= 1, "large work is shared out"


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
@pytest.mark.parametrize("op", ["MaxPoolGrad", "AvgPoolGrad"])
def test_dtypes(compiler: Any, dtype: Any, op: str) -> None:
    arrays = operands((2, 7, 6, 9), (3, 2), (2, 2), "SAME", dtype)
    tolerance = 1e-10 if dtype == np.float64 else 4e-3
    function = gradient(op, (3, 2), (2, 2), "SAME")
    compiler.compare(function, *arrays, rtol=tolerance, atol=tolerance)


def test_infinities_and_nan_are_those_of_tensorflow(compiler: Any) -> None:
    x = np.array([np.nan, 1, 1, 2, -np.inf, -np.inf, 2, 2, 1, np.nan], np.float32)
    x = np.repeat(x.reshape(1, 1, -1, 1), 16, axis=3)
    dy = np.random.default_rng(0).uniform(-1, 1, (1, 1, 5, 16)).astype(np.float32)
    compiler.compare(gradient("MaxPoolGrad", (1, 2), (1, 2), "VALID"), x, dy)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("strides", [(1, 1), (2, 1)])
def test_means_side_by_side_of_few_channels(compiler: Any, strides: Any, dtype: Any) -> None:
    arrays = operands((2, 12, 15, 3), (7, 5), strides, "VALID", dtype)
    tolerance = 2 * float(ml_dtypes.finfo(dtype).eps)
    compiler.compare(
        gradient("AvgPoolGrad", (7, 5), strides, "VALID"), *arrays, rtol=tolerance, atol=tolerance
    )
