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
