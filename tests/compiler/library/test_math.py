"""tf.math as the library has it: special functions, complex numbers, sums, scans, segments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.compiler.library.cases import made

pytestmark = pytest.mark.many_cases

UNIT = np.linspace(-0.95, 0.95, 12).reshape(3, 4)
POSITIVE = np.linspace(0.1, 3.0, 12).reshape(3, 4)
SPECIAL = ["dawsn", "expint", "fresnel_cos", "fresnel_sin", "spence"]
BESSEL = ["i0", "i0e", "i1", "i1e", "j0", "j1", "k0", "k0e", "k1", "k1e", "y0", "y1"]
ROWS = np.array([0, 2, 2, -1], np.int32)

CASES: list[tuple[Any, ...]] = [
    *[(f"tf.math.special.{name}(x)", POSITIVE) for name in SPECIAL],
    *[(f"tf.math.special.bessel_{name}(x)", POSITIVE) for name in BESSEL],
    ("tf.math.bessel_i0(x)", "float32[3]"),
    ("tf.math.bessel_i1e(x, name='b')", "float64[3]"),
    *[(f"tf.{name}(x)", UNIT) for name in ("acos", "math.acos", "math.erfinv")],
    *[(f"tf.math.{name}(x)", UNIT * 0.4 + 0.5) for name in ("ndtri", "erfcinv")],
    ("tf.math.erfcinv(x)", (UNIT * 0.4 + 0.5).astype(np.float32)),
    ("tf.math.xdivy(x, y)", "float32[3, 4]", "float32[4]"),
    ("tf.math.xlog1py(x, y=y)", "float64[3, 4]", POSITIVE),
    ("tf.math.lbeta(x)", POSITIVE),
    ("tf.math.polyval([x, y, x], y)", "float32[3]", "float32[3]"),
    ("tf.math.polyval([], x)", "float32[3]"),
    ("tf.complex(x, y)", "float32[3]", "float32[3]"),
    ("tf.dtypes.complex(real=x, imag=x)", "float64[2, 2]"),
    *[(f"tf.math.{name}(x)", "complex64[3, 4]") for name in ("real", "imag", "angle", "conj")],
    *[(f"tf.math.{name}(x)", "complex128[3]") for name in ("real", "imag", "angle", "conj")],
    *[(f"tf.math.{name}(x)", "float32[3, 4]") for name in ("real", "imag", "angle", "conj")],
    ("tf.math.conj(x)", "int32[3]"),
    ("tf.cumsum(x)", "float32[3, 4]"),
    ("tf.math.cumsum(x, axis=-1, exclusive=True)", "int32[3, 4]"),
    ("tf.cumsum(x, 1, reverse=True)", "complex64[3, 4]"),
    ("tf.math.cumprod(x, 0, True, True)", "float64[3, 4]"),
    ("tf.math.cumulative_logsumexp(x, axis=1)", "float32[3, 4]"),
    ("tf.math.reduce_euclidean_norm(x)", "float32[3, 4]"),
    ("tf.math.reduce_euclidean_norm(x, axis=[-1], keepdims=True)", "float32[3, 4]"),
    ("tf.reduce_logsumexp(x)", "float32[3, 4]"),
    ("tf.math.reduce_logsumexp(x, axis=-1)", np.array([[1e3, 1e3], [-np.inf, -np.inf]])),
    ("tf.reduce_logsumexp(x, [0, 2], keepdims=True)", "float32[3, 4, 2]"),
    ("tf.math.count_nonzero(x)", "int32[3, 4]"),
    ("tf.math.count_nonzero(x, axis=-1, keepdims=True, dtype=tf.int32)", "float32[3, 4]"),
    ("tf.math.count_nonzero(x, 0)", "bool[3, 4]"),
    ("tf.math.count_nonzero(x, 0)", np.array([["a", ""], ["", ""]])),
    ("tf.math.zero_fraction(x)", "int32[3, 4]"),
    ("tf.nn.zero_fraction(value=x)", "float32[3, 4]"),
    ("tf.add_n([x, y])", "float32[3]", "float32[3]"),
    ("tf.math.add_n(inputs=(x,))", "int32[3]"),
    ("tf.math.scalar_mul(2.5, x)", "float32[3]"),
    ("tf.scalar_mul(2, x)", "int32[3]"),
    ("tf.math.unsorted_segment_mean(x, y, 4)", "float32[4, 2]", ROWS),
    ("tf.math.unsorted_segment_mean(x, y, num_segments=3)", "float64[2, 2]", np.eye(2, dtype=int)),
    ("tf.math.unsorted_segment_sqrt_n(x, y, 3)", "float32[4]", ROWS),
    # What is one op.
    ("tf.math.lgamma(x)", POSITIVE),
    ("tf.math.segment_sum(x, y)", "float32[4, 2]", np.array([0, 0, 1, 3])),
    ("tf.math.unsorted_segment_max(x, y, num_segments=3)", "int32[4]", ROWS),
    ("tf.math.squared_difference(x, y)", "complex64[3]", "complex64[3]"),
    ("tf.bitwise.bitwise_xor(x, y)", "uint8[5]", "uint8[5]"),
    ("tf.bitwise.left_shift(x, 2)", "int64[5]"),
    ("tf.bitwise.invert(x)", "uint16[5]"),
    ("tf.math.polygamma(x, y)", np.array([1.0, 2.0]), np.array([1.5, 2.5])),
    ("tf.bitcast(x, tf.int32)", "float32[3]"),
]


@pytest.mark.parametrize(("text", "inputs"), [(text, inputs) for text, *inputs in CASES])
def test_as_tensorflow(text: str, inputs: list[Any], case: Callable[[str], Any]) -> None:
    values = [made(spec, seed) for seed, spec in enumerate(inputs)]
    case(text).check(*values, traced=True)
