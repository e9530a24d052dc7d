"""Convolutions with dilations, and their gradients, against TF in float64.

TensorFlow's float64 kernels take no dilations: they are given the filters with zeros in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tests import draws

RATES = st.integers(1, 3)
SPANS = st.integers(1, 3)
STRIDES = st.integers(1, 2)
SIZES = st.sampled_from([7, 8, 11])
PADDINGS = st.sampled_from(["SAME", "VALID"])
_CHECKS = draws.kernels(12)

_OPS = {
    2: ("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"),
    3: ("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"),
}


def each_axis(numbers: Sequence[int]) -> list[int]:
    return [1, *numbers, 1]


def functions_of(rank: int, **how: Any) -> list[Any]:
    """The convolution, and its gradients of the images and of the filters."""
    forward, of_images, of_filters = (getattr(tf.raw_ops, name) for name in _OPS[rank])
    return [
        lambda x, f, _: forward(input=x, filter=f, **how),
        lambda x, f, dy: of_images(input_sizes=tf.shape(x), filter=f, out_backprop=dy, **how),
        lambda x, f, dy: of_filters(input=x, filter_sizes=tf.shape(f), out_backprop=dy, **how),
    ]


def with_zeros_between(filters: np.ndarray, rates: Sequence[int]) -> np.ndarray:
    reach = [(n - 1) * rate + 1 for n, rate in zip(filters.shape, rates, strict=False)]
    wide = np.zeros([*reach, *filters.shape[len(rates) :]], np.float64)
    wide[tuple(slice(None, None, rate) for rate in rates)] = filters
    return wide


def check(
    compiler: Any, arrays: tuple[np.ndarray, np.ndarray], rates: Sequence[int],
    strides: Sequence[int], padding: str, *, tasks: int = 1,
) -> None:  # fmt: skip
    """Check a convolution of images and filters, and its gradients."""
    x, f = arrays
    how = {"strides": each_axis(strides), "padding": padding}
    wide = with_zeros_between(f, rates)
    forward, of_images, of_filters = functions_of(len(rates), **how)
    exact = np.asarray(forward(np.float64(x), wide, None))
    dy = np.random.default_rng(7).uniform(-1, 1, exact.shape).astype(x.dtype)
    given = np.float64(x), wide, np.float64(dy)
    taps = tuple(slice(None, None, rate) for rate in rates)
    wanted = [exact, of_images(*given), np.asarray(of_filters(*given))[taps]]
    epsilon = float(ml_dtypes.finfo(x.dtype).eps)
    ours = functions_of(len(rates), **how, dilations=each_axis(rates))
    for function, result in zip(ours, wanted, strict=True):
        loaded = compiler.compile(function, [x, f, dy], tasks=tasks)
        (found,) = loaded([x, f, dy], [result.shape], [x.dtype])
        bound = epsilon * (8 + np.sqrt(x.size))
        np.testing.assert_allclose(found.astype(np.float64), result, 2 * epsilon, bound)


def drawn(size: Sequence[int], span: Sequence[int], channels: int, filters: int) -> Any:
    random = np.random.default_rng(sum(size) + channels)
    shapes = (2, *size, channels), (*span, channels, filters)
    return tuple(random.uniform(-1, 1, shape).astype(np.float32) for shape in shapes)


@given(
    size=st.tuples(SIZES, SIZES), span=st.tuples(SPANS, SPANS), rates=st.tuples(RATES, RATES),
    strides=st.tuples(STRIDES, STRIDES), channels=st.sampled_from([1, 3, 17]),
    filters=st.sampled_from([1, 5, 16]), padding=PADDINGS, tasks=st.sampled_from([1, 3]),
)  # fmt: skip
@_CHECKS
def test_any_images(
    compiler: Any, *, size: Any, span: Any, rates: Any, strides: Any, channels: int, filters: int,
    padding: str, tasks: int,
) -> None:  # fmt: skip
    check(compiler, drawn(size, span, channels, filters), rates, strides, padding, tasks=tasks)


@given(
    size=st.tuples(SIZES, SIZES, SIZES), span=st.tuples(SPANS, SPANS, SPANS),
    rates=st.tuples(RATES, RATES, RATES), channels=st.sampled_from([1, 3]),
    filters=st.sampled_from([1, 5]), padding=PADDINGS,
)  # fmt: skip
@_CHECKS
def test_any_volumes(
    compiler: Any, *, size: Any, span: Any, rates: Any, channels: int, filters: int, padding: str
) -> None:
    check(compiler, drawn(size, span, channels, filters), rates, (1, 1, 1), padding)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("rates", [(2, 2), (1, 3), (2, 1)])
def test_images(compiler: Any, padding: str, rates: tuple[int, int]) -> None:
    check(compiler, drawn((9, 11), (3, 2), 3, 5), rates, (1, 1), padding)


def test_windows_that_reach_beyond_the_image(compiler: Any) -> None:
    check(compiler, drawn((3, 2), (3, 3), 3, 5), (4, 5), (1, 1), "SAME")


def test_strides_that_are_wider_than_the_taps(compiler: Any) -> None:
    check(compiler, drawn((9, 11), (2, 2), 3, 5), (2, 2), (3, 3), "VALID")


def test_filters_that_are_not_finite_fail_the_gradient_of_images(compiler: Any) -> None:
    _, of_images, _ = functions_of(2, strides=[1] * 4, padding="SAME", dilations=[1, 2, 2, 1])
    x, f = drawn((6, 6), (3, 3), 2, 4)
    f[0, 1, 0, 2] = np.inf
    loaded = compiler.compile(of_images, [x, f, np.ones((2, 6, 6, 4), np.float32)])
    with pytest.raises(AssertionError, match="refused"):
        loaded([x, f, np.ones((2, 6, 6, 4), np.float32)], [x.shape], [np.float32])
