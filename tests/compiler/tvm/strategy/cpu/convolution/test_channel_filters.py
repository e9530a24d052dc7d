"""Gradients of convolutions channel by channel against TF in float64."""

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
EXPLICIT = [0, 0, 1, 2, 0, 1, 0, 0]
EPSILON = {np.float64: 1e-12, np.float32: 1e-6, np.float16: 1e-3, ml_dtypes.bfloat16: 8e-3}


def options(stride: int, padding: str) -> dict[str, Any]:
    explicit = EXPLICIT if padding == "EXPLICIT" else []
    strides = [1, stride, stride, 1]
    return {"strides": strides, "padding": padding, "explicit_paddings": explicit}


def of_filter(window: tuple[int, int], multiplier: int, stride: int, padding: str) -> Any:
    def function(x: Any, dy: Any) -> Any:
        sizes = [*window, tf.shape(x)[3], multiplier]
        return tf.raw_ops.DepthwiseConv2dNativeBackpropFilter(
            input=x, filter_sizes=sizes, out_backprop=dy, **options(stride, padding)
        )

    return function


def of_image(shape: tuple[int, ...], stride: int, padding: str) -> Any:
    def function(f: Any, dy: Any) -> Any:
        dx = tf.raw_ops.DepthwiseConv2dNativeBackpropInput(
            input_sizes=[tf.shape(dy)[0], *shape[1:]],
            filter=f,
            out_backprop=dy,
            **options(stride, padding),
        )
        return dx * 0.5

    return function


def operands(
    shape: tuple[int, ...], window: Any, multiplier: int, stride: int, padding: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(sum(shape))
    x = random.uniform(-1, 1, shape)
    f = random.uniform(-1, 1, (*window, shape[3], multiplier))
    y = tf.raw_ops.DepthwiseConv2dNative(input=x, filter=f, **options(stride, padding))
    return x, f, random.uniform(-1, 1, y.shape)


def check(compiler: Any, function: Any, arrays: list[Any], dtype: Any, **given: Any) -> Any:
    arrays = [a.astype(dtype) for a in arrays]
    exact = np.asarray(function(*[tf.constant(a.astype(np.float64)) for a in arrays]))
    loaded = compiler.compile(function, arrays, **given)
    (result,) = loaded(arrays, [exact.shape], [np.dtype(dtype)])
    size = max(8.0, np.nanmax(np.abs(exact), where=np.isfinite(exact), initial=0.0))
    np.testing.assert_allclose(
        result.astype(np.float64), exact, rtol=EPSILON[dtype], atol=EPSILON[dtype] * size
    )
    return loaded


@given(
    size=st.tuples(SIZES, SIZES), channels=st.sampled_from([2, 3, 8, 17, 35]),
    window=st.tuples(st.integers(1, 4), st.sampled_from([1, 2, 3, 5, 13])),
    multiplier=st.sampled_from([1, 1, 2, 9]), stride=st.integers(1, 3),
    padding=st.sampled_from(["SAME", "VALID", "EXPLICIT"]), tasks=st.sampled_from([1, 3]),
)  # fmt: skip
@draws.kernels(20)
def test_any_shape(
    compiler: Any, *, size: Any, channels: int, window: Any, multiplier: int, stride: int,
    padding: str, tasks: int,
) -> None:  # fmt: skip
    if padding != "SAME":
        window = tuple(min(w, s) for w, s in zip(window, size, strict=True))
    if padding == "EXPLICIT":
        window = tuple(max(w, least) for w, least in zip(window, (3, 2), strict=True))
    shape = (2, *size, channels)
    x, f, dy = operands(shape, window, multiplier, stride, padding)
    function = of_filter(window, multiplier, stride, padding)
    loaded = check(compiler, function, [x, dy], np.float32, tasks=tasks)
    assert "channel_filters" in loaded.kernel.strategy
    loaded = check(compiler, of_image(shape, stride, padding), [f, dy], np.float32, tasks=tasks)
    assert "channelwise" in loaded.kernel.strategy


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("stride", [1, 2])
def test_dtypes(compiler: Any, dtype: Any, stride: int) -> None:
    shape = (3, 7, 6, 19)
    x, f, dy = operands(shape, (3, 3), 2, stride, "SAME")
    check(compiler, of_filter((3, 3), 2, stride, "SAME"), [x, dy], dtype)
    check(compiler, of_image(shape, stride, "SAME"), [f, dy], dtype)


def test_many_bands_and_images(compiler: Any) -> None:
    x, _, dy = operands((2, 130, 70, 16), (3, 5), 1, 1, "SAME")
    loaded = check(compiler, of_filter((3, 5), 1, 1, "SAME"), [x, dy], np.float32, tasks=3)
    assert loaded.launches >= 1, "large work is shared out"


def test_batch_of_any_size(compiler: Any) -> None:
    shape = (4, 6, 6, 16)
    x, f, dy = (a.astype(np.float32) for a in operands(shape, (3, 3), 1, 2, "SAME"))
    cases = (
        (of_filter((3, 3), 1, 2, "SAME"), x, lambda n: (x[:n], dy[:n]), "s0"),
        (of_image(shape, 2, "SAME"), f, lambda n: (f, dy[:n]), 3),
    )
    for function, first, taken, dim in cases:
        shapes = [(dim, *first.shape[1:]), ("s0", *dy.shape[1:])]
        loaded = compiler.compile(function, [first, dy], shapes)
        for images in (0, 1, 4):
            arrays = taken(images)
            expected = np.asarray(function(*map(tf.constant, arrays)))
            if images == 0:  # TensorFlow leaves the filter's gradient as its memory was
                expected = np.zeros_like(expected)
            (result,) = loaded(list(arrays), [expected.shape], [x.dtype])
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
def test_padding_is_zero_times_what_is_not_finite(compiler: Any, special: float) -> None:
    """As by TensorFlow's own convolution in float64, which multiplies the padding too."""
    shape = (2, 5, 6, 19)
    x, f, dy = operands(shape, (3, 3), 1, 2, "SAME")
    f[0, 1], dy[0, 0, 1, :9] = special, special
    for function, arrays in (
        (of_filter((3, 3), 1, 2, "SAME"), [x, dy]),
        (of_image(shape, 2, "SAME"), [f, dy]),
    ):
        check(compiler, function, arrays, np.float64)
