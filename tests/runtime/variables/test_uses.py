"""Which variables nodes use, those included that run functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf

from tests.runtime.regions.test_partition import calls, ops, regions

HELD, OTHER = tf.Variable(tf.ones([4])), tf.Variable(tf.ones([4]))
X = tf.TensorSpec([4])


@tf.function(autograph=False)
def reads(x: Any) -> Any:
    return tf.math.lgamma(x) + HELD


@tf.function(autograph=False)
def writes(x: Any) -> Any:
    HELD.assign(tf.math.lgamma(x))
    return x


@tf.function(autograph=False)
def writes_another(x: Any) -> Any:
    OTHER.assign(tf.math.lgamma(x))
    return x


def in_a_loop(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: tf.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, function(y)), (0, x))[1]


def in_a_branch(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: tf.cond(tf.reduce_sum(x) > 0.0, lambda: function(x), lambda: x)


@pytest.mark.parametrize("within", [lambda function: function, in_a_loop, in_a_branch])
@pytest.mark.parametrize(
    ("function", "is_sum"), [(reads, True), (writes, False), (writes_another, True)]
)
def test_what_is_read_behind_an_addition_and_a_node_that_runs_a_function(
    function: Any, is_sum: bool, within: Any
) -> None:
    """It is the sum unless the function writes to the variable in between."""

    def body(x: Any) -> Any:
        HELD.assign_add(tf.abs(x) * 0.5)
        between = within(function)(x)
        return between, tf.tanh(HELD.read_value() * 0.5)

    rewritten, found = regions(body, X)
    assert ops(rewritten)["CompositeUpdateVariable"] == 1
    together = any(ops(region)["AddN"] and ops(region)["Tanh"] for region in found.values())
    assert together == is_sum
    assert calls(rewritten)
