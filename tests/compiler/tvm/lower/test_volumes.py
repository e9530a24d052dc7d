"""Convolutions and pools over volumes, and their gradients, against TF in float64."""

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

SIZES = st.sampled_from([1, 2, 5, 6])
SPANS = st.integers(1, 3)
STRIDES = st.integers(1, 3)
THREE = st.tuples(SIZES, SIZES, SIZES)
PADDINGS = st.sampled_from(["SAME", "VALID"])
_CHECKS = draws.kernels(10)


def three(*numbers: int) -> list[int]:
    return [1, *numbers, 1]


def conv3d(how: dict[str, Any]) -> Any:
    return lambda x, f: tf.nn.relu(tf.raw_ops.Conv3D(input=x, filter=f, **how))


def of_volume(how: dict[str, Any]) -> Any:
    def function(x: Any, f: Any, dy: Any) -> Any:
        return x + tf.raw_ops.Conv3DBackpropInputV2(
            input_sizes=tf.shape(x), filter=f, out_backprop=dy, **how
        )

    return function


def of_filter(how: dict[str, Any]) -> Any:
    def function(x: Any, f: Any, dy: Any) -> Any:
        return f + tf.raw_ops.Conv3DBackpropFilterV2(
            input=x, filter_sizes=tf.shape(f), out_backprop=dy, **how
        )

    return function


def pool_of(op: str, how: dict[str, Any]) -> Any:
    return lambda x: getattr(tf.raw_ops, op)(input=x, **how) * 0.5


def pool_gradient(op: str, how: dict[str, Any]) -> Any:
    def function(x: Any, dy: Any) -> Any:
        if op == "AvgPool3D":
            dx = tf.raw_ops.AvgPool3DGrad(orig_input_shape=tf.shape(x), grad=dy, **how)
        else:
            y = tf.raw_ops.MaxPool3D(input=x, **how)
            dx = tf.raw_ops.MaxPool3DGrad(orig_input=x, orig_output=y, grad=dy, **how)
        return dx * 0.5

    return function


def operands(
    volume: tuple[int, ...], kernel: tuple[int, ...], how: dict[str, Any], dtype: Any = np.float32
) -> list[np.ndarray]:
    random = np.random.default_rng(sum(volume) + sum(kernel))
    x, f = (random.uniform(-1, 1, s).astype(dtype) for s in (volume, kernel))
    y = tf.raw_ops.Conv3D(input=np.float32(x), filter=np.float32(f), **how)
    return [x, f, random.uniform(-1, 1, y.shape).astype(dtype)]


def check(
    compiler: Any, function: Any, arrays: list[np.ndarray], shapes: Any = None, **how: Any
) -> Any:
    loaded = compiler.compile(function, arrays, shapes, **how)
    compare(loaded, function, arrays)
    return loaded


def compare(loaded: Any, function: Any, arrays: list[np.ndarray]) -> None:
    exact = np.asarray(function(*[tf.constant(a.astype(np.float64)) for a in arrays]))
    (result,) = loaded(arrays, [exact.shape], [arrays[0].dtype])
    epsilon = float(ml_dtypes.finfo(arrays[0].dtype).eps)
    bound = epsilon * (8 + np.sqrt(max(a.size for a in arrays)))
    np.testing.assert_allclose(result.astype(np.float64), exact, rtol=2 * epsilon, atol=bound)


@given(
    size=THREE, span=st.tuples(SPANS, SPANS, SPANS), strides=st.tuples(STRIDES, STRIDES, STRIDES),
    channels=st.sampled_from([1, 3, 8]), filters=st.sampled_from([1, 5, 16]), padding=PADDINGS,
    tasks=st.sampled_from([1, 3]),
)  # fmt: skip
@_CHECKS
def test_any_convolution(
    compiler: Any, *, size: Any, span: Any, strides: Any, channels: int, filters: int,
    padding: str, tasks: int,
) -> None:  # fmt: skip
    if padding == "VALID":
        span = tuple(min(s, n) for s, n in zip(span, size, strict=True))
    else:  # TensorFlow's in float64 starts within the image where steps are wider than windows
        strides = tuple(min(s, n) for s, n in zip(strides, span, strict=True))
    how = {"strides": three(*strides), "padding": padding}
    arrays = operands((2, *size, channels), (*span, channels, filters), how)
    check(compiler, conv3d(how), arrays[:2], tasks=tasks)
    check(compiler, of_filter(how), arrays, tasks=tasks)
    if all(step == 1 or n % step == 0 for step, n in zip(strides[1:], span[1:], strict=True)):
        check(compiler, of_volume(how), arrays, tasks=tasks)


@given(
    op=st.sampled_from(["MaxPool3D", "AvgPool3D"]), size=THREE,
    window=st.tuples(SPANS, SPANS, SPANS), strides=st.tuples(STRIDES, STRIDES, STRIDES),
    channels=st.sampled_from([1, 3, 8]), padding=PADDINGS,
)  # fmt: skip
@_CHECKS
def test_any_pool(
    compiler: Any, *, op: str, size: Any, window: Any, strides: Any, channels: int, padding: str
) -> None:
    if padding == "VALID":
        window = tuple(min(w, n) for w, n in zip(window, size, strict=True))
    how = {"ksize": three(*window), "strides": three(*strides), "padding": padding}
    random = np.random.default_rng(sum(size))
    x = random.integers(-3, 3, (2, *size, channels)).astype(np.float32)  # some equally large
    y = pool_of(op, how)(x)
    compiler.compare(pool_of(op, how), x, rtol=1e-6, atol=1e-6)
    dy = random.uniform(-1, 1, y.shape).astype(np.float32)
    compiler.compare(pool_gradient(op, how), x, dy, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16])
def test_dtypes(compiler: Any, dtype: Any) -> None:
    how = {"strides": three(1, 1, 1), "padding": "SAME"}
    arrays = operands((2, 4, 5, 6, 3), (3, 3, 2, 3, 8), how, dtype)
    check(compiler, conv3d(how), arrays[:2])
    check(compiler, of_volume(how), arrays)
    check(compiler, of_filter(how), arrays)


def test_volumes_of_any_number(compiler: Any) -> None:
    how = {"strides": three(2, 2, 2), "padding": "SAME"}
    x, f, dy = operands((5, 4, 6, 6, 1), (2, 2, 2, 1, 8), how)
    shapes = [("s0", 4, 6, 6, 1), f.shape, ("s0", 2, 3, 3, 8)]
    for function, count in ((conv3d(how), 2), (of_volume(how), 3), (of_filter(how), 3)):
        loaded = check(compiler, function, [x, f, dy][:count], shapes[:count])
        compare(loaded, function, [x[:1], f, dy[:1]][:count])


def test_volumes_of_any_depth(compiler: Any) -> None:
    how = {"strides": three(1, 1, 1), "padding": "SAME"}
    arrays = [operands((2, depth, 6, 6, 4), (3, 3, 3, 4, 8), how)[:2] for depth in (1, 4, 7)]
    loaded = check(compiler, conv3d(how), arrays[0], [(2, "s0", 6, 6, 4), (3, 3, 3, 4, 8)])
    for others in arrays[1:]:
        compare(loaded, conv3d(how), others)


@pytest.mark.parametrize(("depth", "stride"), [(3, 1), (1, 2)])
def test_gradient_leaves_filters_that_are_not_finite_to_the_expansion(
    compiler: Any, depth: int, stride: int
) -> None:
    """It multiplies them with zeros: slices around the volume, or between its slices."""
    how = {"strides": three(stride, 1, 1), "padding": "SAME"}
    x, f, dy = operands((1, 3, 4, 4, 2), (depth, 1, 1, 2, 2), how)
    loaded = check(compiler, of_volume(how), [x, f, dy])
    f[0, 0, 0, 0, 0] = np.inf
    with pytest.raises(AssertionError, match="refused"):
        loaded([x, f, dy], [x.shape], [x.dtype])


def test_refusals_say_why(compiler: Any) -> None:
    how = {"strides": three(1, 1, 1), "padding": "SAME", "data_format": "NCDHW"}
    x, f = np.zeros((1, 4, 4, 4, 4), np.float32), np.zeros((1, 1, 1, 4, 4), np.float32)
    with pytest.raises(backend.NotCovered, match="Conv3D: data_format NCDHW"):
        compiler.compile(conv3d(how), [x, f])
