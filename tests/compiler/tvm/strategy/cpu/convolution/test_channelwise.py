"""Pooling and convolutions channel by channel against TF in float64."""

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

FOUR_CORES = backend.Target.of("x86-64-v3", 4)

SIZES = st.sampled_from([1, 2, 3, 5, 7, 8, 13, 29])
CHANNELS = st.sampled_from([1, 2, 3, 8, 9, 17])
_CHECKS = draws.kernels(25)


def uniform(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    random = np.random.default_rng(sum(shape) * 31 + len(shape))
    return random.uniform(-1, 1, shape).astype(dtype)


def pool(op: str, size: tuple[int, int], strides: tuple[int, int], padding: str) -> Any:
    argument = "input" if op == "MaxPool" else "value"

    def function(x: Any) -> Any:
        return getattr(tf.raw_ops, op)(
            **{argument: x}, ksize=[1, *size, 1], strides=[1, *strides, 1], padding=padding
        )

    return function


def depthwise(stride: int = 1, padding: str = "SAME") -> Any:
    def function(x: Any, f: Any) -> Any:
        y = tf.raw_ops.DepthwiseConv2dNative(
            input=x, filter=f, strides=[1, stride, stride, 1], padding=padding,
            explicit_paddings=[0, 0, 1, 2, 0, 3, 0, 0] if padding == "EXPLICIT" else [],
        )  # fmt: skip
        return tf.nn.relu6(y + 1.0)

    return function


def check(
    compiler: Any, function: Any, arrays: list[np.ndarray], shapes: Any = None, **options: Any
) -> Any:
    exact = np.asarray(function(*[tf.constant(a.astype(np.float64)) for a in arrays]))
    loaded = compiler.compile(function, arrays, shapes, **options)
    (result,) = loaded(arrays, [exact.shape], [arrays[0].dtype])
    epsilon = float(ml_dtypes.finfo(arrays[0].dtype).eps)
    np.testing.assert_allclose(
        result.astype(np.float64), exact, rtol=2 * epsilon, atol=32 * epsilon
    )
    return loaded


@given(
    op=st.sampled_from(["MaxPool", "AvgPool"]), size=st.tuples(SIZES, SIZES), channels=CHANNELS,
    window=st.tuples(st.integers(1, 4), st.sampled_from([1, 2, 3, 9])),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    padding=st.sampled_from(["SAME", "VALID"]), tasks=st.sampled_from([1, 3]),
)  # fmt: skip
@_CHECKS
def test_pools(
    compiler: Any, *, op: str, size: Any, channels: int, window: Any, strides: Any,
    padding: str, tasks: int,
) -> None:  # fmt: skip
    if padding == "VALID":
        window = tuple(min(w, s) for w, s in zip(window, size, strict=True))
    function = pool(op, window, strides, padding)
    loaded = check(compiler, function, [uniform(2, *size, channels)], tasks=tasks)
    # Windows side by side of few channels are combined along the columns apart.
    beside = padding == "VALID" and strides[1] == 1 and window[1] > 1 and channels < 16
    if beside and op == "AvgPool" and (window[0], strides[0]) == (1, 1):
        assert loaded.kernel.strategy == "elementwise"
    else:
        assert loaded.kernel.strategy == "channelwise" + "+elementwise" * beside


@given(
    size=st.tuples(SIZES, SIZES), channels=st.sampled_from([2, 3, 8, 17]),
    window=st.tuples(st.integers(1, 4), st.sampled_from([1, 3, 5, 9])),
    multiplier=st.sampled_from([1, 1, 2, 9]), stride=st.integers(1, 2),
    padding=st.sampled_from(["SAME", "VALID", "EXPLICIT"]),
)  # fmt: skip
@_CHECKS
def test_depthwise(
    compiler: Any, *, size: Any, channels: int, window: Any, multiplier: int, stride: int,
    padding: str,
) -> None:  # fmt: skip
    if padding != "SAME":
        window = tuple(min(w, s) for w, s in zip(window, size, strict=True))
    arrays = [uniform(2, *size, channels), uniform(*window, channels, multiplier)]
    loaded = check(compiler, depthwise(stride, padding), arrays)
    few = multiplier < loaded.kernel.target.lanes
    assert loaded.kernel.strategy == ("channelwise" if few else "convolution")


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16])
def test_dtypes(compiler: Any, dtype: Any) -> None:
    x = uniform(2, 9, 8, 17, dtype=dtype)
    check(compiler, depthwise(), [x, uniform(3, 3, 17, 1, dtype=dtype)])
    for op in ("MaxPool", "AvgPool"):
        check(compiler, pool(op, (3, 3), (2, 2), "SAME"), [x])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_largest_integers(compiler: Any, dtype: Any) -> None:
    info = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(info.min, info.max, (2, 7, 9, 5), dtype)
    compiler.compare(pool("MaxPool", (2, 3), (1, 2), "SAME"), x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_nan_and_infinity_are_those_of_tensorflow(compiler: Any, dtype: Any) -> None:
    x = np.array([1, np.nan, 2, np.nan, np.inf, -np.inf, -np.inf, -np.inf, 3, np.nan], dtype)
    x = np.repeat(x.reshape(1, 1, -1, 1), 16, axis=3)
    for size in (1, 2, 3):
        compiler.compare(pool("MaxPool", (1, size), (1, 1), "SAME"), x)


@pytest.mark.parametrize("width", [3, 7, 30])
def test_padding_times_an_infinity_is_no_number(compiler: Any, width: int) -> None:
    filters = uniform(3, 3, 17, 1)
    filters[0, 0, 1], filters[2, 2, 2], filters[1, 0, 16] = np.inf, -np.inf, np.nan
    x = np.abs(uniform(1, 4, width, 17)) + 1  # no zeros of its own
    compiler.compare(depthwise(), x, filters, rtol=1e-5, atol=1e-5)


def test_few_lines_are_shared_out_by_channels(compiler: Any) -> None:
    arrays = [uniform(1, 3, 3, 2000), uniform(5, 5, 2000, 1)]
    for tasks in (1, 4):
        loaded = check(compiler, depthwise(), arrays, tasks=tasks, target=FOUR_CORES)
        assert loaded.launches == 1


def test_images_of_any_size(compiler: Any) -> None:
    for op, strides in (("MaxPool", (2, 2)), ("AvgPool", (1, 1))):
        function = pool(op, (2, 2) if op == "MaxPool" else (3, 3), strides, "SAME")
        loaded = compiler.compile(function, [uniform(1, 4, 4, 8)], [("s0", "s1", "s2", "s3")])
        for shape in ((0, 4, 4, 8), (1, 1, 1, 1), (2, 9, 30, 17), (1, 6, 3, 3)):
            x = uniform(*shape)
            exact = np.asarray(function(tf.constant(x)))
            (result,) = loaded([x], [exact.shape], [exact.dtype])
            np.testing.assert_allclose(result, exact, rtol=1e-6, atol=1e-6)


def test_depthwise_of_any_batch_is_shared_out(compiler: Any) -> None:
    arrays = [uniform(9, 20, 20, 24), uniform(3, 3, 24, 1)]
    shapes = [("s0", 20, 20, 24), (3, 3, 24, 1)]
    assert check(compiler, depthwise(), arrays, shapes).launches == 1
    arrays[0] = arrays[0][:0]
    assert check(compiler, depthwise(), arrays, shapes).launches == 0


def test_layer_and_pool_are_two_stages(compiler: Any) -> None:
    def function(x: Any, f: Any) -> Any:
        y = tf.nn.relu(tf.nn.conv2d(x, f, 1, "SAME"))
        return tf.nn.max_pool2d(y, 2, 2, "SAME") * 2.0

    loaded = check(compiler, function, [uniform(2, 9, 7, 8), uniform(3, 3, 8, 16)])
    assert loaded.kernel.strategy == "convolution+channelwise"


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize(("size", "stride"), [((5, 5), 1), ((9, 29), 2)])
def test_padding_is_zero_times_what_is_not_finite(
    compiler: Any, special: float, size: tuple[int, int], stride: int
) -> None:
    """As by TensorFlow's own convolution in float64, which multiplies the padding too."""

    def function(x: Any, f: Any) -> Any:
        return tf.nn.depthwise_conv2d(x, f, [1, stride, stride, 1], "SAME")

    x, f = uniform(2, *size, 3), uniform(3, 4, 3, 2)
    f[0, 1, 1, 0] = f[2, 3, 2, 1] = special
    check(compiler, function, [x, f])


@pytest.mark.parametrize("op", ["MaxPool", "AvgPool"])
@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16])
def test_windows_side_by_side_of_few_channels(compiler: Any, op: str, dtype: Any) -> None:
    """A blur of pictures, of which there may be any number; rows may have another stride."""
    x = uniform(2, 12, 15, 3, dtype=dtype)
    for size, stride in (((7, 7), 1), ((3, 4), 2), ((1, 5), 1)):
        function = pool(op, size, (stride, 1), "VALID")
        check(compiler, function, [x])
        check(compiler, function, [x], shapes=[("s0", 12, 15, 3)])


def test_integers_side_by_side(compiler: Any) -> None:
    x = np.random.default_rng(0).integers(-99, 99, (2, 9, 11, 3), np.int32)
    compiler.compare(pool("MaxPool", (3, 3), (1, 1), "VALID"), x)


@pytest.mark.parametrize("window", [(1, 3), (2, 2)])
def test_largest_side_by_side_of_what_is_no_number(compiler: Any, window: Any) -> None:
    x = uniform(1, 4, 9, 2)
    x[0, 1, 2, 0] = x[0, 1, 3, 0] = x[0, 1, 4, 0] = np.nan
    x[0, 2, :5] = -np.inf
    x[0, 3, 5] = np.inf
    compiler.compare(pool("MaxPool", window, (1, 1), "VALID"), x)


def test_long_windows_side_by_side(compiler: Any) -> None:
    """As long as this they are no chain of so many additions."""
    loaded = check(compiler, pool("AvgPool", (2, 200), (1, 1), "VALID"), [uniform(1, 3, 210, 3)])
    assert loaded.kernel.strategy == "channelwise"
