"""What the check of a kernel tells apart: small mistakes from roundings, of any order and function.

The kernels are functions of NumPy, in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.kernels import verify
from composite.kernels.samples import Samples
from composite.reference.source import Source
from composite.reference.tolerance import judge
from tests.compiler.tvm.conftest import library_of

Array = np.ndarray[Any, Any]
Kernel = Callable[..., Array]

MANY = (6, 4096)
LONG, WIDE = (3, 3000), (3000, 16)


def accepted(function: Callable[..., Any], kernel: Kernel, *shapes: tuple[int, ...]) -> bool:
    """Whether a kernel passes the check against a function's ops."""
    library = library_of(function, [tf.TensorSpec(shape) for shape in shapes])
    samples = Samples(lambda _: library, [list(shapes)])

    def results(sample: Any) -> Sequence[tuple[int, list[Array]]]:
        with np.errstate(all="ignore"):
            found = kernel(*sample.inputs)
        return [(1, [np.asarray(found, np.float32).reshape(sample.expected[0].shape)])]

    try:
        verify.Oracle(samples).compare(results)
    except verify.Mismatch:
        return False
    return True


def total(x: Any) -> Any:
    return tf.reduce_sum(x, -1)


def blocks(x: Array) -> Array:
    """Sums of 64, added up."""
    return x.reshape(len(x), -1, 64).sum(1).sum(1)


def backwards(x: Array) -> Array:
    return np.add.accumulate(x[:, ::-1], 1, dtype=np.float32)[:, -1]


def twice(x: Array) -> Array:
    return np.float32(x.sum(1) + x[:, -1])


@pytest.mark.parametrize(
    ("kernel", "is_right"),
    [
        (lambda x: x.sum(1), True),
        (blocks, True),
        (backwards, True),
        (lambda x: x.astype(np.float64).sum(1), True),
        (twice, False),
        (lambda x: x[:, :-1].sum(1), False),
        (lambda x: np.roll(x, 1, 1)[:, :-4].sum(1), False),
        (lambda x: x.sum(1) * np.float32(1 + 2e-5), False),
    ],
)
def test_sums_of_thousands(kernel: Kernel, *, is_right: bool) -> None:
    assert accepted(total, kernel, MANY) is is_right


@pytest.mark.parametrize(
    ("kernel", "is_right"),
    [
        (lambda x, y: x @ y, True),
        (lambda x, y: x[:, ::-1] @ y[::-1], True),
        (lambda x, y: x[:, :-1] @ y[:-1], False),
        (lambda x, y: x @ y + x[:, -1:] * y[-1:], False),
        (lambda x, y: x @ np.roll(y, 1, 1), False),
    ],
)
def test_products_of_thousands(kernel: Kernel, *, is_right: bool) -> None:
    assert accepted(tf.matmul, kernel, LONG, WIDE) is is_right


def off(function: Callable[[Array], Array], ulps: float) -> Kernel:
    """A function in float32 that is off by so many rounding errors, in one direction."""

    def kernel(x: Array) -> Array:
        exact = function(x.astype(np.float64))
        return np.asarray(exact * (1 + ulps * 2.0**-23)).astype(np.float32)

    return kernel


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(
    ("op", "function", "ulps", "more"),
    [
        (tf.exp, np.exp, 1, 4),
        (tf.sin, np.sin, 1.5, 4),
        (tf.atan, np.arctan, 1.5, 10),
        (tf.math.expm1, np.expm1, 2, 10),
        (tf.sigmoid, sigmoid, 2.5, 14),
        (tf.tanh, np.tanh, 4.5, 14),
    ],
)
def test_a_wrong_coefficient_of_a_function(
    op: Any, function: Any, ulps: float, more: float
) -> None:
    """A function may be off by what is stated, and not by a little more."""
    for sign in (1, -1):
        assert accepted(op, off(function, sign * ulps), (50, 16))
        assert not accepted(op, off(function, sign * (ulps + more)), (50, 16))


def log_cosh(x: Any) -> Any:
    return tf.math.log((tf.exp(x) + tf.exp(-x)) / 2.0)


def log_cosh_off(ulps: float) -> Kernel:
    def kernel(x: Array) -> Array:
        up, down = off(np.exp, ulps)(x), off(np.exp, ulps)(-x)
        return np.log((up + down) / np.float32(2))

    return kernel


def test_a_result_that_cancels_may_be_off_by_what_its_functions_lose() -> None:
    """6e-8 is all that is left of log(cosh(x)) of small numbers."""
    assert accepted(log_cosh, log_cosh_off(1), (64, 16))
    assert not accepted(log_cosh, log_cosh_off(16), (64, 16))


def saturation(x: Any) -> Any:
    return 1.0 - tf.tanh(x)


def test_what_is_left_of_a_function_that_nears_one() -> None:
    def kernel(ulps: float) -> Kernel:
        return lambda x: np.float32(1) - off(np.tanh, ulps)(x)

    assert accepted(saturation, kernel(4.5), (64, 16))
    assert accepted(saturation, kernel(-4.5), (64, 16))
    assert not accepted(saturation, kernel(40), (64, 16))


def balance(x: Any, y: Any) -> Any:
    return (total(x * y) - total(tf.reverse(x * y, [-1]))) * 1e4


def test_what_is_lost_where_numbers_end_may_be_multiplied() -> None:
    """In one order products are zeros, in another they are kept: neither is what cancels."""
    x, y = (np.full((4, 32), value, np.float32) for value in (1e-19, 4e-20))
    library = library_of(balance, [tf.TensorSpec(x.shape)] * 2)
    (own,), (reference,) = Source(library).run([x, y])
    assert (own == 0).all()
    assert (reference.exact == 0).all()
    kept = 16 * 4e-39 * 1e4
    assert judge(np.full(4, kept, np.float32), reference).at is None
    assert judge(np.full(4, 1e4 * kept, np.float32), reference).at is not None
