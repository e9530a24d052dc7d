"""Every op of the table against TF itself, special values included."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import tvm as backend

raw = tf.raw_ops
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, -3.7, 6.0, 7.0, 1e-40, -1e-40,
           1e-7, 3e38, -3e38, np.inf, -np.inf, np.nan, 20.0, -20.0, 88.0, -100.0]  # fmt: skip
FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
EPSILON = {np.float32: 2.0**-23, np.float64: 2.0**-52, np.float16: 2.0**-10,
           ml_dtypes.bfloat16: 2.0**-7}  # fmt: skip


def samples(dtype: Any, seed: int = 0, count: int = 61) -> np.ndarray:
    random = np.random.default_rng(seed)
    if dtype == np.bool_:
        return random.random(count) < 0.5
    if np.dtype(dtype).kind == "i":
        info = np.iinfo(dtype)
        edges = [0, 1, -1, info.max, info.min, info.max - 1, 7, -7]
        return np.concatenate([edges, random.integers(-100, 100, count - 8)]).astype(dtype)
    with np.errstate(over="ignore"):
        values = np.concatenate([SPECIAL, random.standard_normal(count - len(SPECIAL)) * 3])
        return values.astype(dtype)


def pairs(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return every sample against every other; none subnormal, which TF's threads flush to 0."""
    values = samples(dtype, count=33)
    if np.dtype(dtype).kind != "i":
        values = values[(values == 0) | ~(np.abs(values.astype(np.float64)) < 1e-37)]
    return np.repeat(values, values.size), np.tile(values, values.size)


UNARY: dict[str, float] = {  # op -> units in the last place of the dtype
    "Neg": 0, "Abs": 0, "Sign": 0, "Square": 1, "Sqrt": 1, "Rsqrt": 3, "Reciprocal": 1, "Inv": 1,
    "Exp": 3, "Expm1": 6, "Log": 3, "Log1p": 4, "Erf": 6, "Erfc": 8,
    "Floor": 0, "Ceil": 0, "Round": 0,
    "Relu": 0, "Relu6": 0, "Elu": 6, "Selu": 6, "Softplus": 6, "Softsign": 2,
    "Sigmoid": 6, "Tanh": 8,
}  # fmt: skip
ARGUMENT = {"Relu": "features", "Relu6": "features", "Elu": "features", "Selu": "features",
            "Softplus": "features", "Softsign": "features"}  # fmt: skip


def in_float64(function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    """Return TF's answer computed in float64 and rounded to the arrays' dtype."""
    wide = [a.astype(np.float64) for a in arrays]
    with np.errstate(over="ignore"):
        return np.asarray(function(*wide)).astype(arrays[0].dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("op", UNARY)
def test_unary_floats(compiler: Any, op: str, dtype: Any) -> None:
    def function(x: Any) -> Any:
        return getattr(raw, op)(**{ARGUMENT.get(op, "x"): x})

    x = samples(dtype)
    # TF's erf of infinity is NaN in float64.
    exact = {"Erf": math.erf, "Erfc": math.erfc}
    oracle = np.vectorize(exact[op]) if op in exact else function
    expected = in_float64(oracle, x)
    loaded = compiler.compile(function, [x])
    (result,) = loaded([x], [x.shape], [x.dtype])
    tolerance = (UNARY[op] + 0.51) * EPSILON[dtype]
    tiny = float(ml_dtypes.finfo(dtype).smallest_subnormal) * 2
    if op in ("Exp", "Sigmoid", "Softplus") and dtype == np.float32:
        tiny = float(np.finfo(dtype).smallest_normal)  # below, e^x may be zero
    if op in ("Elu", "Selu"):
        tiny = max(tiny, 3e-16)  # TF's own has exp(x) - 1
    np.testing.assert_allclose(
        result.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tiny
    )


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("op", ["Neg", "Abs", "Sign", "Square", "Relu", "Relu6"])
def test_unary_integers(compiler: Any, op: str, dtype: Any) -> None:
    compiler.compare(
        lambda x: getattr(raw, op)(**{ARGUMENT.get(op, "x"): x}), samples(dtype, count=30)
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize(
    "op", ["AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference", "Add"]
)
def test_arithmetic(compiler: Any, op: str, dtype: Any) -> None:
    a, b = pairs(dtype)
    compiler.compare(lambda a, b: getattr(raw, op)(x=a, y=b), a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", ["RealDiv", "Div", "DivNoNan", "MulNoNan", "FloorDiv", "FloorMod"])
def test_division(compiler: Any, op: str, dtype: Any) -> None:
    a, b = pairs(dtype)
    if op.startswith("Floor"):  # the floor of -1e-40 is -1, but 0 on TF's threads
        small = ~(np.abs(b) > 1e30)
        a, b = a[small], b[small]
    compiler.compare(lambda a, b: getattr(raw, op)(x=a, y=b), a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_power(compiler: Any, dtype: Any) -> None:
    a, b = pairs(dtype)
    expected = in_float64(tf.pow, a, b)
    loaded = compiler.compile(tf.pow, [a, b])
    (result,) = loaded([a, b], [a.shape], [a.dtype])
    np.testing.assert_allclose(result, expected, rtol=1.5 * EPSILON[dtype], atol=1e-44)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("op", ["AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Minimum"])
def test_narrow_floats_round_once(compiler: Any, op: str, dtype: Any) -> None:
    a, b = pairs(dtype)
    compiler.compare(lambda a, b: getattr(raw, op)(x=a, y=b), a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize(
    "op", ["Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"]
)
def test_comparison(compiler: Any, op: str, dtype: Any) -> None:
    a, b = pairs(dtype)
    compiler.compare(lambda a, b: getattr(raw, op)(x=a, y=b), a, b)


@pytest.mark.parametrize("op", ["Equal", "NotEqual"])
def test_equality_as_the_operators_of_python_have_it(compiler: Any, op: str) -> None:
    def function(x: Any, y: Any) -> Any:
        return getattr(raw, op)(x=x, y=y, incompatible_shape_error=False)

    x = np.array([[1.0, 2.0, np.nan], [3.0, 1.0, 0.0]], np.float32)
    for y in (np.ones((), np.float32), x[:1], x[:, 1:2], x):
        shapes = [["s0", 3], ["s0" if i == 0 and d == 2 else d for i, d in enumerate(y.shape)]]
        compiler.compare(function, x, y)
        loaded = compiler.compare(function, x, y, shapes=shapes)
        assert loaded.kernel.proof.is_complete


def test_logic_and_selection(compiler: Any) -> None:
    p, q = samples(np.bool_, 1), samples(np.bool_, 2)
    x, y = samples(np.float32, 3), samples(np.float32, 4)

    def function(p: Any, q: Any, x: Any, y: Any) -> Any:
        both = tf.logical_and(p, tf.logical_not(q))
        return (
            tf.logical_or(both, tf.equal(p, q)),
            tf.where(both, x, y),
            raw.Select(condition=p, x=x, y=y),
            tf.where(p, x, 0.0),
            tf.math.is_nan(x),
            tf.math.is_inf(x),
            tf.math.is_finite(x),
        )

    compiler.compare(function, p, q, x, y)


def test_select_by_rows(compiler: Any) -> None:
    p = samples(np.bool_, 1, 5)
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    compiler.compare(lambda p, x: raw.Select(condition=p, x=x, y=-x), p, x)


@pytest.mark.parametrize("source", [*FLOATS, np.int32, np.int64, np.bool_])
@pytest.mark.parametrize("target", [*FLOATS, np.int32, np.int64, np.bool_])
def test_cast(compiler: Any, source: Any, target: Any) -> None:
    x = samples(source)
    if np.dtype(target) == np.bool_ and np.dtype(source).kind != "i":
        x = x[(x == 0) | ~(np.abs(x.astype(np.float64)) < 1e-37)]
    if np.dtype(source).kind not in "ib" and np.dtype(target).kind == "i":
        x = x[np.abs(x.astype(np.float64)) < 1e6]  # beyond, C leaves the result open
    compiler.compare(lambda x: tf.cast(x, target), x)


GRADIENTS = {
    "ReluGrad": ("gradients", "features", 0),
    "Relu6Grad": ("gradients", "features", 0),
    "LeakyReluGrad": ("gradients", "features", 0),
    "EluGrad": ("gradients", "outputs", 1),
    "SeluGrad": ("gradients", "outputs", 1),
    "SoftplusGrad": ("gradients", "features", 4),
    "SoftsignGrad": ("gradients", "features", 3),
    "TanhGrad": ("dy", "y", 3),
    "SigmoidGrad": ("dy", "y", 3),
    "SqrtGrad": ("dy", "y", 2),
    "RsqrtGrad": ("dy", "y", 3),
    "ReciprocalGrad": ("dy", "y", 3),
    "InvGrad": ("dy", "y", 3),
}


@pytest.mark.parametrize("op", GRADIENTS)
def test_gradients(compiler: Any, op: str) -> None:
    first, second, ulp = GRADIENTS[op]
    random = np.random.default_rng(5)
    dy = random.standard_normal(50).astype(np.float32)
    y = np.concatenate([[0.0, 6.0, 1.0, -1.0], random.uniform(-0.9, 7, 46)]).astype(np.float32)

    def function(dy: Any, y: Any) -> Any:
        return getattr(raw, op)(**{first: dy, second: y})

    expected = in_float64(function, dy, y)
    loaded = compiler.compile(function, [dy, y])
    (result,) = loaded([dy, y], [y.shape], [y.dtype])
    # TanhGrad and SigmoidGrad lose digits in 1 - y where y is near 1: bound by their operands.
    np.testing.assert_allclose(result, expected, rtol=(ulp + 1) * 2.0**-23, atol=2e-6)


@pytest.mark.parametrize(("y", "dy"), [(1e-13, 1e24), (1e15, 1e-30)])
def test_the_gradient_of_a_reciprocal_root_has_the_range_of_its_result(
    compiler: Any, y: float, dy: float
) -> None:
    arrays = [np.full(5, x, np.float32) for x in (y, dy)]
    loaded = compiler.compile(lambda y, dy: raw.RsqrtGrad(y=y, dy=dy), arrays)
    (result,) = loaded(arrays, [(5,)], [np.float32])
    np.testing.assert_allclose(result, np.full(5, -0.5 * dy * y**3), rtol=1e-6)


def test_leaky_relu_slope(compiler: Any) -> None:
    x = samples(np.float32)
    compiler.compare(lambda x: tf.nn.leaky_relu(x, alpha=0.125), x)


def test_views_and_fills(compiler: Any) -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

    def function(x: Any) -> Any:
        return (
            tf.reshape(x, [4, -1]) * 2.0,
            tf.transpose(x, [2, 0, 1]) + 1.0,
            tf.squeeze(tf.expand_dims(x, 1), 1),
            tf.reshape(tf.transpose(x, [0, 2, 1]), [8, 3]),
            tf.broadcast_to(
                x[None, 0:0, :] if False else tf.reshape(x, [1, 2, 3, 4]), [3, 2, 3, 4]
            ),
            tf.zeros_like(x),
            tf.ones_like(x) * x,
            tf.fill([2, 3], 5.0),
            raw.AddN(inputs=[x, x, x]),
            tf.tile(x, [2, 1, 3]),
            tf.tile(tf.reshape(x, [2, 1, 12]), [1, 5, 1]) + 1.0,
            tf.tile(x, [1, 1, 1]),
        )

    compiler.compare(function, x)


@pytest.mark.parametrize("shape", [(2, 3, 4), ("s0", 3, 4), (2, "s0", "s1")])
def test_the_gradient_of_tile(compiler: Any, shape: tuple[Any, ...]) -> None:
    def function(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.tile(x, [2, 1, 3]) ** 2
        return tape.gradient(y, x)

    compiler.compare(function, np.arange(24, dtype=np.float32).reshape(2, 3, 4), shapes=[shape])


def test_bias_add_layouts(compiler: Any) -> None:
    x = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
    channels_last, channels_first = np.arange(5, dtype=np.float32), np.arange(3, dtype=np.float32)

    def function(x: Any, last: Any, first: Any) -> Any:
        # TF's own CPU kernel has BiasAdd in both layouts.
        return tf.nn.bias_add(x, last), tf.nn.bias_add(x, first, data_format="NCHW")

    compiler.compare(function, x, channels_last, channels_first)


def test_constants(compiler: Any) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    row = np.array([1.5, -2.0, 0.0, np.inf], np.float32)

    def function(x: Any) -> Any:
        return x * row, x * 0.0, x / 0.0, tf.constant([3, 1, 2]), 0.0 * x * np.float32(np.nan)

    compiler.compare(function, x)


def test_gradients_of_special_numbers(compiler: Any) -> None:
    """A NaN gets through a unit that is off; nothing comes back through the root of 0."""
    x, dy = pairs(np.float32)
    kept = ~(np.abs(x) > 1e38)  # TF's reciprocal of a larger one is a denormal: 0
    x, dy = x[kept], dy[kept]
    compiler.compare(
        lambda x, dy: (
            raw.ReluGrad(gradients=dy, features=x),
            raw.Relu6Grad(gradients=dy, features=x),
            raw.SqrtGrad(y=x, dy=dy),
        ),
        x,
        dy,
        rtol=2e-7,
    )


def test_zero_times_infinity_is_not_folded(compiler: Any) -> None:
    x = np.array([np.inf, np.nan, -1.0, 2.0] * 4, np.float32)
    compiler.compare(lambda x: (x * 0.0, 0.0 / x, x * -0.0), x)


def test_shape_arithmetic_leaves_no_code(compiler: Any) -> None:
    x = np.ones((3, 4, 5), np.float32)

    def function(x: Any) -> Any:
        shape = tf.shape(x)
        rows = tf.reduce_prod(shape[:-1], keepdims=True)
        flat = tf.reshape(x, tf.concat([rows, shape[-1:]], 0))
        doubled = tf.reshape(x, [shape[0] * 2, -1])
        return flat + 1.0, tf.reshape(flat, shape), tf.size(x) * 2, doubled * 2.0

    compiler.compare(function, x)
    compiler.compare(function, x, shapes=[("s0", 4, 5)])


def test_gradients_of_reductions(compiler: Any) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)

    def function(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = (
                tf.reduce_sum(x * x, axis=-1),
                tf.reduce_mean(x * x, axis=0),
                tf.reduce_max(x, axis=1, keepdims=True),
                tf.math.reduce_variance(x, axis=1),
            )
        return tape.gradient(y, x)

    compiler.compare(function, x)
    sizes = tf.TensorSpec([None, 4], tf.float32)
    unknown = tf.function(function, input_signature=[sizes])
    compiler.compare(unknown, x)


def test_sizes_are_divided_now(compiler: Any) -> None:
    x = np.arange(24, dtype=np.float32).reshape(6, 4)

    def function(x: Any) -> Any:
        size = tf.size(x)
        half = tf.maximum(tf.shape(x)[0] // 2, 1)
        return tf.reshape(x, [half, 2, -1]) + 1.0, x + tf.cast(size // 24 % 5, tf.float32)

    compiler.compare(function, x)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: tf.sort(tf.tile(x, [4])), "TopKV2: k of 12"),
        (lambda x: tf.unique(x)[0], "Unique"),
        (lambda x: tf.cast(x, tf.complex64), "COMPLEX64"),
        (lambda x: tf.cast(x, tf.int32) // 0, "division by zero"),
        (lambda x: tf.raw_ops.Equal(x=x, y=[1.0, 2.0], incompatible_shape_error=False), "broadc"),
        (lambda x: tf.reshape(x, tf.cast(x, tf.int32)), "computed at run time"),
        (lambda x: tf.random.uniform([3]) + x, "RandomUniform"),
    ],
)
def test_not_covered_names_the_reason(compiler: Any, function: Any, reason: str) -> None:
    with pytest.raises(backend.NotCovered, match=reason):
        compiler.compile(function, [np.ones((3,), np.float32)])


@pytest.mark.parametrize("exponent", [1.0, 2.0, 3.0, -1.0, 0.5])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
def test_powers_that_are_a_few_multiplications(compiler: Any, dtype: Any, exponent: float) -> None:
    def function(x: Any) -> Any:
        return raw.Pow(x=x, y=tf.constant(exponent, tf.as_dtype(dtype)))

    x = samples(dtype)
    expected = in_float64(lambda x: raw.Pow(x=x, y=np.float64(exponent)), x)
    (result,) = compiler.compile(function, [x])([x], [x.shape], [x.dtype])
    tiny = float(ml_dtypes.finfo(dtype).tiny)
    np.testing.assert_allclose(
        result.astype(np.float64), expected.astype(np.float64),
        rtol=1.6 * EPSILON[dtype], atol=tiny, equal_nan=True,
    )  # fmt: skip
