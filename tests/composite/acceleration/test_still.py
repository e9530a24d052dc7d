"""Comparing functions whose variables somebody writes to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.acceleration import still
from composite.trials.results import Deviation

FAR = Deviation(0, 1.0, 1e-3)


class Trained(tf.Module):
    """A layer, and functions of it before each call of which somebody trains it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        self.steps = tf.Variable(7)

    def layer(self, x: Any, factor: float) -> Any:
        return tf.matmul(x, self.weight) * factor + tf.cast(self.steps, tf.float32)

    def train(self) -> None:
        self.weight.assign_add(tf.ones([2, 2]))
        self.steps.assign_add(1)

    def function(self, factor: float) -> Any:
        traced = tf.function(lambda x: self.layer(x, factor))

        class Disturbed:
            get_concrete_function = traced.get_concrete_function

            def __call__(_, x: Any) -> Any:
                self.train()
                return traced(x)

        return Disturbed()


@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_what_differs_is_called_again_on_the_same_values(factor: float) -> None:
    model = Trained()
    x = tf.ones([3, 2])
    original, other = model.function(1.0), model.function(factor)
    assert np.all(original(x) != other(x))
    found = still.moved(original, other, [x], None, FAR)
    assert found.is_small == (factor == 1.0)
    # Both read the model's own variables again.
    for function, scale in ((original, 1.0), (other, factor)):
        found_now = function(x)
        np.testing.assert_allclose(found_now, model.layer(x, scale))


def test_nothing_is_called_where_results_are_close() -> None:
    close = Deviation(0, 1e-4, 1e-3)
    assert still.moved(None, None, [], None, close) is close
