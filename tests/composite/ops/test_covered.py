"""What a body only seems to reach costs no kernel; what a kernel leaves to TensorFlow is raised."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from tests.composite.ops.covered_ops import (
    attention,
    factorial_or_magnitude,
    is_one_of,
    quotients,
    sum_of_magnitudes,
    twice_the_magnitudes,
)

X = np.arange(-30, 30, dtype=np.float32).reshape(6, 10)


def run_as_kernel(op: Any, *args: Any, **attrs: Any) -> Any:
    before = composite.stats()
    with composite.options(backend="tvm"):
        made = op(*args, **attrs)
    since = composite.stats() - before
    assert since["kernel_launches"] == 1 and since["expansion_runs"] == 0
    return made


def test_a_branch_that_the_dtypes_exclude_costs_no_kernel() -> None:
    made = run_as_kernel(sum_of_magnitudes, X, X + 1, U=tf.float32)
    np.testing.assert_array_equal(made, np.abs(X) + np.abs(X + 1))
    np.testing.assert_array_equal(run_as_kernel(twice_the_magnitudes, X), 2 * np.abs(X))
    np.testing.assert_array_equal(run_as_kernel(factorial_or_magnitude, X, k=0), np.abs(X))


def test_a_branch_that_is_taken_does() -> None:
    with (
        composite.options(backend="tvm"),
        pytest.raises(tf.errors.FailedPreconditionError, match="op Lgamma is not in the kernel"),
    ):
        factorial_or_magnitude(X, k=3)
    with (
        composite.options(backend="tvm"),
        pytest.raises(tf.errors.FailedPreconditionError, match="no kernel takes its dtypes"),
    ):
        sum_of_magnitudes(X.astype(np.complex64), X.astype(np.complex64), U=tf.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_equality_by_operators(dtype: Any) -> None:
    x, y = X.astype(dtype), X[:, :1].astype(dtype)
    np.testing.assert_array_equal(run_as_kernel(is_one_of, x, y), ((x == y) | (x == 0)) & (x != 7))


def test_a_division_by_zero_is_tensorflows_error() -> None:
    x = X.astype(np.int64)
    for found, wanted in zip(run_as_kernel(quotients, x, x - 40), divmod(x, x - 40), strict=True):
        np.testing.assert_array_equal(found, wanted)
    before = composite.stats()
    with (
        composite.options(backend="tvm"),
        pytest.raises(tf.errors.InvalidArgumentError, match="nteger division by zero"),
    ):
        quotients(x, x)
    since = composite.stats() - before
    assert since["kernel_errors"] == since["expansion_runs"] == 1


def test_einsum_and_its_gradient() -> None:
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((2, n, 3, 8)).astype(np.float32) for n in (5, 7, 7))
    wide = [tf.constant(a, tf.float64) for a in (q, k, v)]
    scores = np.einsum("bthd,bshd->bhts", *wide[:2]) * 0.5
    wanted = np.einsum("bhts,bshd->bthd", tf.nn.softmax(scores), wide[2])
    np.testing.assert_allclose(run_as_kernel(attention, q, k, v), wanted, rtol=1e-5, atol=1e-6)
    composite.check(attention, q, k, v)
