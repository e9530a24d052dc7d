"""Numbers inside a body, checked: what is an error, and that it names the line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite

pytestmark = pytest.mark.usefixtures("expansions_only")


@Composite("CheckedLogistic", inputs=["x: float"], outputs=["y: float"])
def logistic(x: Any) -> Any:
    return 1.0 / (1.0 + tf.exp(-x))


@Composite("CheckedRoot", inputs=["x: float"], outputs=["y: float"])
def root(x: Any) -> Any:
    for _ in range(2):
        x = tf.sqrt(x)
    return x


@Composite("CheckedMasked", inputs=["x: float"], outputs=["y: float"])
def masked(x: Any) -> Any:
    return tf.reduce_max(tf.where(x > 2.5, -np.inf, x))


FINITE, OVERFLOWS = tf.constant([2.0, 3.0]), tf.constant([2.0, -100.0])


@pytest.mark.parametrize("traced", [False, True])
def test_an_infinity_whose_result_is_finite_is_found(traced: bool) -> None:
    function = tf.function(logistic) if traced else logistic
    with composite.options(check_numerics=True):
        np.testing.assert_allclose(function(FINITE), logistic.python_function(FINITE))
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"test_checked.py:19:\d+: Exp : Tensor had .*Inf"
        ):
            function(OVERFLOWS)
    np.testing.assert_array_equal(logistic(OVERFLOWS)[1], 0.0)


def test_a_gradient_is_checked() -> None:
    def slope(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = root(x)
        return tape.gradient(y, x)

    with composite.options(check_numerics=True):
        traced = tf.function(slope)
        np.testing.assert_allclose(traced(FINITE), slope(FINITE))
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"test_checked.py:25:.*Inf"):
            traced(tf.constant([0.0]))


def test_an_infinity_that_is_meant_is_moved() -> None:
    with composite.options(check_numerics=True):
        np.testing.assert_array_equal(masked(FINITE), 2.0)
