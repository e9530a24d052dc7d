"""Division of integers against TensorFlow: signs, limits, and zeros, at which a kernel fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm import NotCovered
from tests.compiler.tvm.lower.test_lower import pairs, samples

raw = tf.raw_ops
OPS = ["FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod", "Div", "Mod"]
INTEGERS = [np.int32, np.int64]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", OPS)
def test_every_sign_and_limit(compiler: Any, op: str, dtype: Any) -> None:
    a, b = pairs(dtype)
    a, b = a[b != 0], b[b != 0]
    loaded = compiler.compare(lambda a, b: getattr(raw, op)(x=a, y=b), a, b)
    assert loaded.kernel.proof.is_complete, loaded.kernel.proof


@pytest.mark.parametrize("divisor", [1, -1, 2, 7, -16])
@pytest.mark.parametrize("op", OPS)
def test_by_a_constant(compiler: Any, op: str, divisor: int) -> None:
    a = samples(np.int32, count=40)
    compiler.compare(lambda a: getattr(raw, op)(x=a, y=np.int32(divisor)), a)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", ["Mod", "TruncateMod"])
def test_rests_of_floats(compiler: Any, op: str, dtype: Any) -> None:
    a, b = pairs(dtype)
    a, b = a[np.abs(b) < 1e30], b[np.abs(b) < 1e30]
    compiler.compare(lambda a, b: getattr(raw, op)(x=a, y=b), a, b)


@pytest.mark.parametrize("place", [0, 1, 36])
@pytest.mark.parametrize("op", OPS)
def test_the_kernel_fails_at_a_zero(compiler: Any, op: str, place: int) -> None:
    a, b = np.arange(37, dtype=np.int32), np.full(37, 3, np.int32)
    loaded = compiler.compile(lambda a, b: getattr(raw, op)(x=a, y=b), [a, b])
    b[place] = 0
    with pytest.raises(AssertionError, match="refused"):
        loaded([a, b], [a.shape], [a.dtype])


def test_a_zero_that_broadcasts(compiler: Any) -> None:
    a, b = np.ones((3, 5), np.int32), np.array([[2], [0], [1]], np.int32)
    loaded = compiler.compile(lambda a, b: a // b, [a, b])
    with pytest.raises(AssertionError, match="refused"):
        loaded([a, b], [a.shape], [a.dtype])


@pytest.mark.parametrize("shape", [[3], ["s0"]])
def test_a_known_zero_is_left_to_tensorflow(compiler: Any, shape: Any) -> None:
    for function in (lambda a: a // 0, lambda a: a + tf.shape(a) // 0):
        with pytest.raises(NotCovered, match="FloorDiv: division by zero"):
            compiler.compile(function, [np.ones(3, np.int32)], [shape])


def test_sizes_divide_as_data(compiler: Any) -> None:
    x = np.arange(35, dtype=np.int32).reshape(5, 7)
    for function in (
        lambda x: x + tf.shape(x)[0] // 2,
        lambda x: x // tf.shape(x),
        lambda x: x % (tf.shape(x)[1] - 3),
    ):
        compiler.compare(function, x[:, :2], shapes=[["s0", 2]])
        compiler.compare(function, x[:, :2], shapes=[[5, 2]])
