"""The vector functions as kernels of TensorFlow's ops have them, densely, against wider floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm.math.accuracy import BOUNDS
from composite.compiler.tvm.target import Target

Wide = np.longdouble
LEVELS = sorted({"x86-64-v2", Target.host().isa})  # without and with fused multiply-adds


def _sigmoid(x: Any) -> Any:
    return np.where(x < 0, np.exp(np.minimum(x, 0)), 1) / (1 + np.exp(-np.abs(x)))


def _softplus(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _tanh_of_softplus(x: Any) -> Any:
    return tf.tanh(tf.nn.softplus(x))


# function -> (TF op, reference)
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "exp": (tf.exp, np.exp),
    "expm1": (tf.math.expm1, np.expm1),
    "log": (tf.math.log, np.log),
    "log1p": (tf.math.log1p, np.log1p),
    "tanh": (tf.tanh, np.tanh),
    "sigmoid": (tf.sigmoid, _sigmoid),
    "softplus": (tf.nn.softplus, _softplus),
    "tanh_of_softplus": (_tanh_of_softplus, lambda x: np.tanh(_softplus(x))),
    "rsqrt": (tf.math.rsqrt, lambda x: 1 / np.sqrt(x)),
    "sin": (tf.sin, np.sin),
    "cos": (tf.cos, np.cos),
    "tan": (tf.tan, np.tan),
    "atan": (tf.atan, np.arctan),
}


def bound(name: str, dtype: Any, target: Target | None = None) -> float:
    """The largest error that is stated, on this machine or for a target."""
    target = target or Target.host()
    return BOUNDS[name].of(np.dtype(dtype).name, fuses=target.has_fma)


def all_exponents(dtype: Any, count: int) -> np.ndarray:
    """Return values over every exponent and sign, those around 1 more densely, and the edges."""
    random = np.random.default_rng(1)
    integer = np.int32 if dtype == np.float32 else np.int64
    info = np.iinfo(integer)
    bits = random.integers(info.min, info.max, count, dtype=integer, endpoint=True)
    near = random.uniform(-1, 1, count) * 10.0 ** random.uniform(-8, 3, count)
    limits = np.finfo(dtype)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, limits.max, limits.min, limits.tiny,
             limits.smallest_subnormal, -limits.smallest_subnormal, 88.72283, 88.72284, 88.73,
             -87.33654, -103.97, -103.98, 709.78, 709.79, -745.1, -745.2, 1.0, -1.0]  # fmt: skip
    return np.concatenate([bits.view(dtype), near.astype(dtype), np.array(edges, dtype)])


def ulp_error(result: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return the distance in units in the last place of the exact value."""
    dtype = result.dtype
    with np.errstate(all="ignore"):
        rounded = exact.astype(dtype)
        unit = np.spacing(np.abs(np.where(np.isfinite(rounded), rounded, np.finfo(dtype).max)))
        error = np.abs(result.astype(Wide) - exact) / unit.astype(Wide)
    same = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
    return np.where(same, 0, np.where(np.isnan(error), np.inf, error)).astype(np.float64)


def flushed(result: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return the exact values with zero where float32 may be: in place of subnormal numbers."""
    smallest = np.finfo(np.float32).smallest_normal
    is_zero = (result.dtype == np.float32) & (result == 0) & (np.abs(exact) < smallest)
    return np.where(is_zero, 0, exact)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_bound(compiler: Any, name: str, dtype: Any) -> None:
    op, reference = FUNCTIONS[name]
    x = all_exponents(dtype, 100_000)
    if name in ("sin", "cos", "tan"):
        # Vectors of moderate arguments, and some with one that is too large for the polynomials.
        moderate = np.random.default_rng(3).uniform(-71000, 71000, 20_000).astype(dtype)
        x = np.concatenate([x[:20_000], x[-60_000:], moderate])
    with np.errstate(all="ignore"):
        exact = reference(x.astype(np.float64 if dtype == np.float32 else Wide)).astype(Wide)
    loaded = compiler.compile(op, [x])
    (result,) = loaded([x], [x.shape], [x.dtype])
    if name in ("exp", "sigmoid", "softplus", "tanh_of_softplus"):
        exact = flushed(result, exact)
    error = ulp_error(result, exact)
    worst = int(np.argmax(error))
    assert error[worst] <= bound(name, dtype), (
        f"{name}({x[worst]!r}) = {result[worst]!r}, not {exact[worst]!r}"
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_atan2(compiler: Any, dtype: Any) -> None:
    """All quarters, the axes and infinities; the sign of zero chooses between half turns."""
    random = np.random.default_rng(4)
    ends = np.array([0.0, -0.0, 1.0, -1.0, 2.0, np.inf, -np.inf, np.nan, 1e30, -1e-30], dtype)
    far = (
        random.choice([-1, 1], (2, 50_000)) * 10.0 ** random.uniform(-18, 18, (2, 50_000))
    ).astype(dtype)
    near = random.uniform(-2, 2, (2, 50_000)).astype(dtype)
    y, x = np.concatenate([[m.ravel() for m in np.meshgrid(ends, ends)], far, near], 1)
    with np.errstate(all="ignore"):
        exact = np.arctan2(y.astype(Wide), x.astype(Wide))
    loaded = compiler.compile(tf.atan2, [y, x])
    (result,) = loaded([y, x], [x.shape], [dtype])
    exact = flushed(result, exact)
    error = ulp_error(result, exact)
    worst = int(np.argmax(error))
    assert error[worst] <= bound("atan2", dtype), (y[worst], x[worst])
    assert (np.signbit(result) == np.signbit(y))[~np.isnan(exact)].all()


@pytest.mark.parametrize("isa", LEVELS)
def test_exp_of_difference(compiler: Any, isa: str) -> None:
    """The exponentials of softmax: of two numbers, the ratio of the results is one of them."""
    x = -np.abs(all_exponents(np.float32, 20_000))
    x = np.concatenate([x, np.linspace(-110, 0, 20_001).astype(np.float32)])
    given = np.stack([x, np.zeros_like(x)], 1)
    loaded = compiler.compile(tf.nn.softmax, [given], target=Target.of(isa, 2))
    (result,) = loaded([given], [given.shape], [np.float32])
    with np.errstate(all="ignore"):
        exact = np.exp(x.astype(np.float64))
        error = result[:, 0].astype(np.float64) / result[:, 1].astype(np.float64) / exact - 1
    normal = x > -87
    assert (np.abs(error[normal]) <= 4 * 2.0**-24 + np.abs(x[normal]) * 2.0**-28).all()
    assert (result[x < -88, 0] == 0).all()
    assert np.isnan(result[np.isnan(x)]).all()


@pytest.mark.parametrize("isa", LEVELS)
def test_erf(compiler: Any, isa: str) -> None:
    x = np.concatenate([all_exponents(np.float32, 20_000), np.linspace(-5, 5, 1_000_001)])
    x = x.astype(np.float32)
    exact = np.vectorize(math.erf)(x.astype(np.float64)).astype(Wide)
    loaded = compiler.compile(tf.math.erf, [x], target=Target.of(isa, 2))
    (result,) = loaded([x], [x.shape], [x.dtype])
    error = ulp_error(result, exact)
    worst = int(np.argmax(error))
    assert np.nanmax(np.abs(result)) == 1
    most = bound("erf", np.float32, Target.of(isa, 2))
    assert error[worst] <= most, (x[worst], result[worst], exact[worst])


@pytest.mark.parametrize("isa", LEVELS)
def test_erfc(compiler: Any, isa: str) -> None:
    x = np.concatenate([all_exponents(np.float32, 20_000), np.linspace(-5, 10.5, 20_001)])
    x = x.astype(np.float32)
    exact = np.vectorize(math.erfc)(x.astype(np.float64)).astype(Wide)
    loaded = compiler.compile(tf.math.erfc, [x], target=Target.of(isa, 2))
    (result,) = loaded([x], [x.shape], [x.dtype])
    error = ulp_error(result, flushed(result, exact))
    worst = int(np.argmax(error))
    most = bound("erfc", np.float32, Target.of(isa, 2))
    assert error[worst] <= most, (x[worst], result[worst], exact[worst], error[worst])


@pytest.mark.parametrize("isa", LEVELS)
def test_exp_of_minus_square(compiler: Any, isa: str) -> None:
    x = np.concatenate([all_exponents(np.float32, 20_000), np.linspace(-9.3, 9.3, 20_001)])
    x = x.astype(np.float32)
    with np.errstate(all="ignore"):
        exact = np.exp(-(x.astype(Wide) ** 2))
    function = lambda x: tf.exp(-tf.square(x))  # noqa: E731
    loaded = compiler.compile(function, [x], target=Target.of(isa, 2))
    (result,) = loaded([x], [x.shape], [x.dtype])
    error = ulp_error(result, flushed(result, exact))
    worst = int(np.argmax(error))
    most = bound("exp_of_minus_square", np.float32, Target.of(isa, 2))
    assert error[worst] <= most, (x[worst], result[worst], exact[worst], error[worst])


def test_power(compiler: Any) -> None:
    random = np.random.default_rng(2)
    x = np.abs(all_exponents(np.float32, 20_000))
    y = random.choice(np.concatenate([all_exponents(np.float32, 2000), np.arange(-9, 9.5, 0.5)]),
                      x.size).astype(np.float32)  # fmt: skip
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(Wide), y.astype(Wide))
    loaded = compiler.compile(tf.pow, [x, y])
    (result,) = loaded([x, y], [x.shape], [x.dtype])
    error = ulp_error(result, exact)
    worst = int(np.argmax(error))
    assert error[worst] <= bound("power", np.float32), (
        x[worst],
        y[worst],
        result[worst],
        exact[worst],
    )


@pytest.mark.parametrize("size", [1, 3, 7])
def test_scalar_path_gives_the_same_as_vectors(compiler: Any, size: int) -> None:
    """Short rows take one lane at a time: the same formulas, so nearly the same bits."""
    x = np.linspace(-3, 3, 8 * size).astype(np.float32)

    def function(x: Any) -> Any:
        return tf.tanh(x), tf.exp(x), tf.sigmoid(x)

    whole = compiler.compile(function, [x])
    short = compiler.compile(function, [x[:size]])
    for a, b in zip(
        whole([x], [x.shape] * 3, [x.dtype] * 3),
        short([x[:size]], [(size,)] * 3, [x.dtype] * 3),
        strict=True,
    ):
        np.testing.assert_array_max_ulp(a[:size], b, 1)
