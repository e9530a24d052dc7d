"""Zeros: each op gives one with a sign that TensorFlow gives it, and numbers where TF has numbers.

A division or `atan2` behind an op reads the sign. Of a zero in TensorFlow's results it may depend
on whether the element lies in a whole vector or behind the last one; either will do there.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import op_traits
from tests.compiler.tvm.denormals import denormals_are_zero

pytestmark = pytest.mark.many_cases

NUMBERS = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.5, -0.5, np.inf, -np.inf]
# Of complex numbers, of integers, and of another number of operands, or of other shapes.
OTHERS = {"AddN", "BiasAdd", "BiasAddV1", "ClipByValue", "Conj", "TruncateDiv"}
# TensorFlow has no kernel of these for 16 bits.
WIDE = {"Mod", "Rint", "TruncateMod"}
CASES = sorted(
    (name, dtype)
    for name, row in op_traits.TABLE.items()
    if row.family in ("activation", "arithmetic", "unary") and name not in OTHERS
    for dtype in ("float32", "float16")
    if dtype == "float32" or name not in WIDE
)


def _tensorflows(function: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the results in whole vectors, and each element's on its own."""
    together = function(*map(tf.constant, arrays))
    alone = [function(*(tf.constant(a[i : i + 1]) for a in arrays)) for i in range(len(arrays[0]))]
    return [np.asarray(y, np.float64) for y in (together, tf.concat(alone, 0))]


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_zeros_and_infinities(compiler: Any, op: str, dtype: str) -> None:
    raw = getattr(tf.raw_ops, op)
    parameters = inspect.signature(raw).parameters.values()
    names = [p.name for p in parameters if p.default is inspect.Parameter.empty]
    numbers = np.asarray(NUMBERS, dtype)
    pairs = [np.repeat(numbers, numbers.size), np.tile(numbers, numbers.size)]
    arrays = pairs if len(names) == 2 else [numbers]

    def function(*given: Any) -> Any:
        return raw(**dict(zip(names, given, strict=True)))

    expected = _tensorflows(function, arrays)
    (found,) = compiler.compile(function, arrays)(arrays, [arrays[0].shape], [np.dtype(dtype)])
    found = found.astype(np.float64)
    agrees = [
        (np.isnan(y) & np.isnan(found))
        | (np.isfinite(y) == np.isfinite(found)) & (np.signbit(y) == np.signbit(found))
        for y in expected
    ]
    wrong = np.flatnonzero(~np.logical_or(*agrees))
    assert [(*(float(a[i]) for a in arrays), expected[0][i], found[i]) for i in wrong] == []


_OF_DENORMALS = {
    "equal": lambda x: x == 0,
    "not equal": lambda x: x != 0,
    "not equal to the first": lambda x: x != x[:1],
    "less": lambda x: x < 0,
    "greater": lambda x: x > 0,
    "at least": lambda x: x >= 0,
    "negative": lambda x: -x == 0,
    "size": lambda x: tf.abs(x) != 0,
    "truth": lambda x: tf.cast(x, tf.bool),
    "sign": tf.sign,
    "quotient without NaN": lambda x: tf.math.divide_no_nan(tf.ones_like(x), x),
    "product without NaN": lambda x: tf.math.multiply_no_nan(x + np.inf, x),
    "count": lambda x: tf.math.count_nonzero(x, 0),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", _OF_DENORMALS)
def test_denormals_are_zeros(compiler: Any, name: str, dtype: str) -> None:
    """Where they are compared by their bits, too: LLVM knows these of a bfloat16, and of -x."""
    kind = tf.as_dtype(dtype).as_numpy_dtype
    zeros = np.zeros((3, 40), kind)
    denormal = np.full_like(zeros, 1e-39)
    assert np.all(denormal != 0)
    like = tf.nest.flatten(_OF_DENORMALS[name](tf.constant(zeros)))[0]
    loaded = compiler.compile(_OF_DENORMALS[name], [zeros])
    with denormals_are_zero():
        of_zeros, of_more, of_less = (
            loaded([x], [tuple(like.shape)], [like.dtype.as_numpy_dtype])[0]
            for x in (zeros, denormal, -denormal)
        )
    for y in (of_more, of_less):
        size = np.abs(np.asarray(y, np.float64))
        assert np.where(size < 1.2e-38, 0, y).tolist() == of_zeros.tolist()
