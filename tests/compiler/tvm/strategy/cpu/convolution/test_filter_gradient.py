"""Gradients of convolutions, of the image and of the filters, against TF in float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from composite.compiler import tvm as backend
from tests import draws

SIZES = st.sampled_from([1, 2, 5, 8, 13])
CHANNELS = st.sampled_from([1, 3, 8, 17])
SPANS = st.sampled_from([1, 2, 3, 5])
_CHECKS = draws.kernels(8)


def options(padding: str, stride: int) -> dict[str, Any]:
    around = [0, 0, 2, 1, 0, 1, 0, 0] if padding == "EXPLICIT" else []
    return {"strides": [1, stride, stride, 1], "padding": padding, "explicit_paddings": around}


def operands(
    image: tuple[int, ...], kernel: tuple[int, ...], how: dict[str, Any], dtype: Any = np.float32
) -> list[np.ndarray]:
    random = np.random.default_rng(sum(image) + sum(kernel))
    x, f = (random.uniform(-1, 1, s).astype(dtype) for s in (image, kernel))
    y = tf.raw_ops.Conv2D(input=np.float32(x), filter=np.float32(f), **how)
    return [x, f, random.uniform(-1, 1, y.shape).astype(dtype)]


def of_image(how: dict[str, Any]) -> Any:
    def function(x: Any, f: Any, dy: Any) -> Any:
        return x + tf.raw_ops.Conv2DBackpropInput(
            input_sizes=tf.shape(x), filter=f, out_backprop=dy, **how
        )

    return function


def of_filter(how: dict[str, Any]) -> Any:
    def function(x: Any, f: Any, dy: Any) -> Any:
        return f + tf.raw_ops.Conv2DBackpropFilter(
            input=x, filter_sizes=tf.shape(f), out_backprop=dy, **how
        )

    return function


def check(
    compiler: Any, function: Any, arrays: list[np.ndarray], shapes: Any = None, **how: Any
) -> Any:
    exact = np.asarray(function(*[tf.constant(a.astype(np.float64)) for a in arrays]))
    loaded = compiler.compile(function, arrays, shapes, **how)
    (result,) = loaded(arrays, [exact.shape], [arrays[0].dtype])
    epsilon = float(ml_dtypes.finfo(arrays[0].dtype).eps)
    bound = epsilon * (8 + np.sqrt(arrays[2].size))
    np.testing.assert_allclose(result.astype(np.float64), exact, rtol=2 * epsilon, atol=bound)
    return loaded


@given(
    size=st.tuples(SIZES, SIZES), span=st.tuples(SPANS, SPANS), channels=CHANNELS,
    filters=CHANNELS, stride=st.integers(1, 3),
    padding=st.sampled_from(["SAME", "VALID", "EXPLICIT"]), tasks=st.sampled_from([1, 3]),
)  # fmt: skip
@_CHECKS
def test_any_shape(
    compiler: Any, *, size: Any, span: Any, channels: int, filters: int, stride: int,
    padding: str, tasks: int,
) -> None:  # fmt: skip
    if padding == "EXPLICIT":
        span = (3, 2)  # wider than the padding in front
    if padding == "VALID":
        span = tuple(min(s, n) for s, n in zip(span, size, strict=True))
    how = options(padding, stride)
    arrays = operands((2, *size, channels), (*span, channels, filters), how)
    loaded = check(compiler, of_filter(how), arrays, tasks=tasks)
    dense = span == (1, 1) and stride == 1
    assert loaded.kernel.strategy == "filter_gradient" or dense
    if span == (1, 1) or stride < 3 <= min(span) + 1:
        loaded = check(compiler, of_image(how), arrays, tasks=tasks)
        assert ("gemm" if span == (1, 1) else "convolution") in loaded.kernel.strategy


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_dtypes(compiler: Any, dtype: Any) -> None:
    how = options("SAME", 1)
    arrays = operands((2, 7, 6, 9), (3, 3, 9, 12), how, dtype)
    check(compiler, of_filter(how), arrays)
    check(compiler, of_image(how), arrays)


@pytest.mark.parametrize(("function", "others"), [(of_image, 1), (of_filter, 0)])
def test_batch_of_any_size_is_shared_out(compiler: Any, function: Any, others: int) -> None:
    """Whether the filters are finite is looked at in a launch of its own."""
    how = options("SAME", 1)
    x, f, dy = operands((9, 12, 12, 16), (3, 3, 16, 24), how)
    shapes = [("s0", 12, 12, 16), f.shape, ("s0", 12, 12, 24)]
    assert check(compiler, function(how), [x, f, dy], shapes).launches == 1 + others
    assert check(compiler, function(how), [x[:0], f, dy[:0]], shapes).launches == 0


@pytest.mark.parametrize(
    ("span", "stride", "padding"),
    [(2, 2, "SAME"), (3, 2, "SAME"), (4, 2, "VALID"), (3, 3, "SAME"), (1, 3, "VALID")],
)
def test_transposed_convolutions(compiler: Any, span: int, stride: int, padding: str) -> None:
    how = options(padding, stride)
    arrays = operands((3, 7, 9, 4), (span, span, 4, 6), how)
    shapes: Any = [x.shape for x in arrays]
    if span <= stride:  # the others are long to compile
        shapes = [("s0", 7, 9, 4), arrays[1].shape, ("s0", *arrays[2].shape[1:])]
    check(compiler, of_image(how), arrays, shapes)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("number", [np.inf, np.nan])
def test_filters_that_are_not_finite_fail_the_kernel(
    compiler: Any, stride: int, number: float
) -> None:
    """TensorFlow multiplies nothing outside of the image; zero times infinity would be NaN."""
    how = options("SAME", stride)
    arrays = operands((2, 6, 6, 3), (3, 3, 3, 8), how)
    loaded = check(compiler, of_image(how), arrays)
    arrays[1][1, 2, 0, 3] = number
    with pytest.raises(AssertionError, match="refused"):
        loaded(arrays, [arrays[0].shape], [np.float32])


def test_filters_that_do_not_overlap_may_be_infinite(compiler: Any) -> None:
    how = options("SAME", 2)
    arrays = operands((2, 6, 6, 3), (2, 2, 3, 8), how)
    arrays[1][0, 0, 0, 0] = np.inf
    with np.errstate(invalid="ignore"):
        check(compiler, of_image(how), arrays)


@pytest.mark.parametrize(
    ("stride", "span", "padding"),
    [(3, 2, "SAME"), (3, 4, "SAME"), (3, 5, "VALID"), (4, 1, "SAME"), (2, 1, "VALID")],
)
def test_strides_that_do_not_divide_the_filter(
    compiler: Any, stride: int, span: int, padding: str
) -> None:
    how = options(padding, stride)
    check(compiler, of_image(how), operands((2, 8, 9, 3), (span, span, 3, 8), how))


@pytest.mark.parametrize(("spans", "strides"), [((2, 3), (3, 1)), ((1, 5), (2, 3))])
def test_one_of_two_strides_does_not_divide_the_filter(
    compiler: Any, spans: tuple[int, int], strides: tuple[int, int]
) -> None:
    how = options("SAME", 1) | {"strides": [1, *strides, 1]}
    check(compiler, of_image(how), operands((2, 8, 9, 3), (*spans, 3, 8), how))


def test_gradients_that_are_not_finite_fail_the_kernel(compiler: Any) -> None:
    """Where filters are wider by zeros: a product of one would be NaN."""
    how = options("SAME", 3)
    arrays = operands((2, 6, 6, 3), (2, 2, 3, 8), how)
    loaded = check(compiler, of_image(how), arrays)
    arrays[2][1, 1, 0, 3] = np.inf
    with pytest.raises(AssertionError, match="refused"):
        loaded(arrays, [arrays[0].shape], [np.float32])


def test_unequal_strides(compiler: Any) -> None:
    how = options("SAME", 1) | {"strides": [1, 2, 1, 1]}
    check(compiler, of_image(how), operands((2, 8, 5, 3), (3, 2, 3, 5), how))


def test_padding_beyond_the_filter_is_not_covered(compiler: Any) -> None:
    how = options("EXPLICIT", 2)
    with pytest.raises(backend.NotCovered, match="Conv2DBackpropInput: padding"):
        compiler.compile(of_image(how), operands((1, 6, 6, 3), (2, 3, 3, 8), how))
